"""What a caller gives to a model, as documents: texts, a matrix of counts, a data frame; and what a model refuses to read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from securetm.contracts import Array, Reads, TopicModel
from securetm.corpus.given_texts import tokeniser_of
from securetm.corpus.held_documents import HeldDocuments, check_lengths, keys_of_counts
from securetm.corpus.tokeniser import LONGEST
from securetm.errors import BadSetting, Mistake
from securetm.extras import sparse

if TYPE_CHECKING:
    from securetm.corpus.tokeniser import Tokeniser


SPREAD = np.uint64(0x9E3779B97F4A7C15)  # spreads numbers over 64 bits
_UNNAMED = "word "  # before the number of a column that has no name


class UnfitDocuments(Mistake, ValueError):
    """documents that a model cannot read; scikit-learn's tools wait for a ValueError"""


class NoKnownWords(UserWarning):
    """Some documents have no word of the model's vocabulary, so their topic shares are those of any document."""


class TextsLeftOut(UserWarning):
    """A corpus has no row for some of the texts that it was made of."""


def as_documents(given: Any, vocabulary: Sequence[str] | None = None, tokeniser: Tokeniser | None = None) -> Any:
    """The documents to learn from. Texts without a word are left out, and texts over a given vocabulary have its words only.

    A matrix of counts gives documents whose keys are made of their counts, wherever their rows are. Its words are those of the
    vocabulary, or the names of a data frame's columns, or numbers. Embeddings stand beside it in a pair: (counts, embeddings).
    """
    given, embeddings = _with_embeddings(given)
    if _are_documents(given):
        return given
    texts = texts_in(given)
    if texts is not None:
        return _read(texts, tokeniser, vocabulary, keep_empty=False)
    return _counted(given, vocabulary if vocabulary is not None else column_names(given), embeddings)


def over(given: Any, vocabulary: tuple[str, ...], tokeniser: Tokeniser | None = None) -> Any:
    """The documents over these words, in which every text keeps its row. A matrix or corpus over other words is refused."""
    given, embeddings = _with_embeddings(given)
    texts = None if _are_documents(given) else texts_in(given)
    if texts is not None:
        return _read(texts, tokeniser, vocabulary, keep_empty=True)
    known = given if _are_documents(given) else _counted(given, column_names(given) or vocabulary, embeddings)
    if tuple(known.vocabulary) != vocabulary:
        raise _other_vocabulary(len(known.vocabulary), len(vocabulary))
    return known


def column_names(given: Any) -> tuple[str, ...] | None:
    """The names of a data frame's columns, where all of them are texts."""
    names = tuple(getattr(given, "columns", ()))
    return tuple(map(str, names)) if names and all(isinstance(name, str) for name in names) else None


def texts_in(given: Any) -> Sequence[Any] | None:
    """The texts of a sequence, of a column of a data frame, or of a table with one column; None where there are no texts."""
    if isinstance(given, str | bytes) or sparse.issparse(given):
        return None
    if isinstance(given, list | tuple):
        return given if any(isinstance(one, str) for one in given) else None
    table = np.asarray(given)
    if table.dtype.kind not in "OUT" or table.ndim == 0 or table.size != len(table):
        return None
    texts: list[Any] = table.reshape(-1).tolist()
    return texts if any(isinstance(text, str) for text in texts) else None


def tokeniser_for(given: Any, tokeniser: Tokeniser | None) -> Tokeniser | None:
    """The caller's tokeniser; or for texts the one of a plan, with the stop words of their language."""
    texts = texts_in(given) if tokeniser is None else None
    return tokeniser if texts is None else tokeniser_of(texts, unsure=True, stacklevel=5)


def numbered(vocabulary: tuple[str, ...]) -> bool:
    """Whether the words are those of a matrix that names none."""
    return all(word == f"{_UNNAMED}{place}" for place, word in enumerate(vocabulary))


def words_of(documents: Any) -> Array:
    """The number of words of each document, repeated ones each time."""
    return np.asarray(documents.counts.sum(axis=1)).reshape(-1).astype(np.int64)


def warn_of_unknown(documents: Any) -> None:
    """Counts the documents without a word, whose topic shares would look like any other's."""
    if unknown := int((words_of(documents) == 0).sum()):
        several = len(documents)
        have = "document has" if several == 1 else "documents has" if unknown == 1 else "documents have"
        sentence = (
            f"{unknown} of {several} {have} no word that the model knows: the topic shares given for "
            f"{'it' if unknown == 1 else 'them'} are what the model expects of any document"
        )
        warnings.warn(sentence, NoKnownWords, stacklevel=3)


def warn_of_left_out(given: Any) -> None:
    """Counts the texts that a corpus was made of and has no row for, so that rows and texts do not match."""
    from securetm.corpus.corpus import Corpus

    if isinstance(given, Corpus) and given.skipped:
        one = given.skipped == 1
        sentence = (
            f"{given.skipped} of its texts {'has' if one else 'have'} no word, and the corpus has no row for "
            f"{'it' if one else 'them'}: give the list of texts itself, or make the corpus with keep_empty=True"
        )
        warnings.warn(sentence, TextsLeftOut, stacklevel=3)


def _are_documents(given: Any) -> bool:
    return hasattr(given, "keys") and hasattr(given, "counts") and not hasattr(given, "iloc")  # a data frame has columns


def _read(texts: Sequence[Any], tokeniser: Tokeniser | None, vocabulary: Sequence[str] | None, keep_empty: bool) -> Any:
    """The texts as a corpus, over the given words only where some are given."""
    from securetm.corpus.corpus import Corpus  # who gives counts needs no tokeniser
    from securetm.corpus.tokeniser import Tokeniser

    # a model without one reads every text alike, whatever stands beside it
    read = Corpus.from_strings(texts, tokeniser=tokeniser or Tokeniser(), keep_empty=keep_empty)
    return read if vocabulary is None else read.project(tuple(vocabulary))


def _with_embeddings(given: Any) -> tuple[Any, Array | None]:
    """The documents, and the embeddings that stand beside a matrix in a pair."""
    if not (isinstance(given, tuple) and len(given) == 2 and getattr(given[0], "ndim", 0) == 2):
        return given, None
    counts, embeddings = given[0], np.asarray(given[1])
    if embeddings.dtype.kind not in "iuf" or embeddings.ndim != 2 or len(embeddings) != counts.shape[0]:
        shape = f"{' x '.join(map(str, embeddings.shape))} beside {counts.shape[0]} documents"
        raise BadSetting("documents", "embeddings", shape, "must be a matrix of numbers with one row for each document")
    if not np.isfinite(embeddings).all():
        raise BadSetting("documents", "embeddings", "a matrix", "must hold no infinite or missing numbers")
    return counts, embeddings.astype(np.float32, copy=False)


def _counted(matrix: Any, vocabulary: Sequence[str] | None, embeddings: Array | None) -> Any:
    counts = _counts_of(matrix)
    words = tuple(vocabulary) if vocabulary is not None else tuple(f"{_UNNAMED}{v}" for v in range(counts.shape[1]))
    if len(words) != counts.shape[1]:
        raise _other_vocabulary(counts.shape[1], len(words))
    from securetm.corpus.corpus import Corpus

    return Corpus(HeldDocuments(counts, words, keys_of_counts(counts, words, embeddings), embeddings=embeddings))


def _counts_of(matrix: Any) -> Any:
    """The matrix as CSR without repeated entries and zeros, which names of documents would hold.

    Refuses anything but a table of numbers that can be counts.
    """
    table = matrix if sparse.issparse(matrix) else np.asarray(matrix)
    if table.dtype.kind == "O" and table.ndim == 2:  # numbers in place of objects where all of them are numbers
        with suppress(TypeError, ValueError):
            table = table.astype(np.float64)
    if table.dtype.kind not in "biuf" or table.ndim != 2 or table.shape[1] == 0:
        raise UnfitDocuments(
            "the documents are neither a corpus, nor texts, nor a matrix of counts with a column for each word, but {found}",
            hint="give a list of texts, a corpus (securetm.Corpus.from_strings, securetm.read_corpus), or "
            "counts: documents x words",
            found=_said(matrix, table),
        )
    counts = sparse.csr_array(table)
    if not counts.has_canonical_format or not counts.data.all():
        counts = counts.copy()  # the caller's matrix stays as it is
        counts.sum_duplicates()
        counts.eliminate_zeros()
    if counts.nnz and not (np.isfinite(counts.data).all() and counts.data.min() >= 0):
        raise BadSetting("documents", "counts", "a matrix", "must hold no negative, infinite or missing counts")
    check_lengths(np.asarray(counts.astype(np.float64).sum(axis=1)).ravel(), LONGEST)
    return counts


def _said(given: Any, table: Any) -> str:
    """What was given instead of documents; of its content nothing is told."""
    if given is None:
        return "nothing (None)"
    if isinstance(given, str | bytes):
        return "a single text"
    if table.ndim == 0:
        return f"a single {type(given).__name__}"
    if table.size == 0:
        return f"an empty {type(given).__name__}"
    kind = "numbers" if table.dtype.kind in "biuf" else "texts or other things"
    return f"{kind}, {' x '.join(map(str, table.shape))}"


def check_needs(model: TopicModel, documents: Any) -> None:
    """Raises unless the documents have the sentences, or embeddings of the size, that the model reads."""
    if Reads.SENTENCES in model.reads and not documents.has_sentences:
        raise no_sentences()
    if model.embedding_size:
        check_width(documents.embedding_width, model.embedding_size)


def check_embeddings(embeddings: Array | None, size: int) -> Array:
    """The embeddings, if there are any and each has so many numbers."""
    check_width(0 if embeddings is None or not embeddings.ndim else embeddings.shape[-1], size)
    assert embeddings is not None
    return embeddings


def check_width(found: int, size: int) -> None:
    """Refuses embeddings that have another number of numbers, of which 0 means that there are none."""
    if not found:
        raise UnfitDocuments(
            "the documents have no embeddings, and the model reads one of {size:number|numbers} beside each document's words",
            hint="name the column that holds them (--embedding COLUMN, or embeddings= in Corpus.from_strings), "
            "or give a matrix of "
            "counts with them as a pair, (counts, embeddings)",
            size=size,
        )
    if found != size:
        raise UnfitDocuments(
            "the documents' embeddings have {found:number|numbers} each where the model reads {size}",
            hint="set the model's embedding_size to theirs (--set model.embedding_size={found}), or embed the "
            "documents as for the "
            "model",
            found=found,
            size=size,
        )


def no_sentences() -> UnfitDocuments:
    """The mistake of documents in no reading order, given to a model that reads sentences."""
    return UnfitDocuments(
        "the documents are counts of words: where their sentences end is not known",
        hint="read them from texts (Corpus.from_strings, read_corpus), or give tokens with sentence_ends; "
        "for bare counts take LDA",
    )


def _other_vocabulary(found: int, known: int) -> UnfitDocuments:
    return UnfitDocuments(
        "the documents have {found} words where the model's vocabulary has {known}, or others, or in another order",
        hint="count the documents over the model's own vocabulary, for example with corpus.project(model.learned.vocabulary)",
        found=found,
        known=known,
    )
