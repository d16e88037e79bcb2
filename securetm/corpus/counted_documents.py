"""Documents as sparse counts, with their reading order and a few columns. It reads no file and knows no model.

Row i of every column is document i. Nothing here depends on what other parties hold: every random choice about a document
depends on its key, which no other document and no place in a file changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from securetm.contracts import BLOCK_DOCUMENTS, Array
from securetm.corpus.chosen_runs import order_of
from securetm.corpus.corpus_errors import UnlikeParts
from securetm.corpus.document_names import copy_numbers, names_of_counts, names_of_tokens
from securetm.corpus.dropped import Dropped
from securetm.corpus.held_blocks import HeldInBlocks, by_person, check_whole, numbered
from securetm.corpus.keys import content_keys, document_keys, mixed, secret_of
from securetm.corpus.length_limits import LONGEST, check_counts, check_lengths, check_token_ids
from securetm.errors import BadSetting

_BLOCK = 1 << 19  # tokens that are counted at once
COLUMNS = ("labels", "parties", "dates", "embeddings", "persons", "texts")  # one entry per document, if there at all
_KINDS: dict[str, Any] = {
    "labels": np.str_,
    "parties": np.str_,
    "dates": np.str_,
    "embeddings": np.float32,
    "persons": np.int64,
    "keys": np.uint64,
    "texts": np.uint8,
}


@dataclass(frozen=True, eq=False)
class CountedDocuments(HeldInBlocks):
    """A collection of documents over one vocabulary.

    `counts` is a CSR array of int32, documents x vocabulary, without stored zeros. Where the order of words is known, `tokens`
    holds word ids in reading order, all documents end to end; `token_ends` says where each document ends and `sentence_ends`
    where each sentence ends. No sentence is empty, and a document's end is always the end of a sentence.
    """

    counts: Any
    vocabulary: tuple[str, ...]
    keys: Array
    tokens: Array | None = None
    token_ends: Array | None = None
    sentence_ends: Array | None = None
    labels: Array | None = None
    parties: Array | None = None
    dates: Array | None = None
    embeddings: Array | None = None
    persons: Array | None = None
    people: str = ""  # the numbering of `persons`: equal numbers of two numberings are two people
    texts: Array | None = None  # 16 bytes of a digest of each document's text, where it was read from one
    name: str = ""
    skipped: int = 0  # documents without a word that the reader left out
    dropped: tuple[Dropped, ...] = ()  # documents that are not here, by reason; it is not saved
    block_documents: int = BLOCK_DOCUMENTS
    block_numbers: Array | None = None  # the block of each document; None: all are in one
    perturbed: ClassVar[None] = None  # no noise stands in for its words

    def __post_init__(self) -> None:
        rows = len(self.keys)
        _agree("rows of counts", self.counts.shape[0], rows)
        _agree("columns of counts", self.counts.shape[1], len(self.vocabulary))
        for column in (*COLUMNS, "block_numbers"):
            entries = getattr(self, column)
            _agree(column, rows if entries is None else len(entries), rows)
        if self.block_numbers is not None and self.persons is not None:
            check_whole(self.persons, self.block_numbers)
        if self.tokens is not None:
            _check_order(self.tokens, self.token_ends, self.sentence_ends, rows, len(self.vocabulary))

    # ---- making documents ------------------------------------------------------------------------------------------

    @classmethod
    def from_counts(
        cls, matrix: Any, vocabulary: Sequence[str], *, name: str = "counts", longest: int = LONGEST, **columns: Any
    ) -> Self:
        """A corpus without reading order: `matrix` is dense or sparse, documents x vocabulary.

        No document may have more words than `longest`.
        """
        given = sparse.csr_array(matrix)
        check_counts(given, longest)
        counts = given.astype(np.int32)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        words, known = unrepeated(vocabulary), _as_columns(name, columns)
        _agree("columns of counts", counts.shape[1], len(words))
        if "keys" not in known:
            _agree_columns(known, counts.shape[0])
            known["keys"] = _keyed(name, names_of_counts(counts, words, known))
        return cls(counts, words, **known)

    @classmethod
    def from_tokens(
        cls, tokens: Array, token_ends: Array, vocabulary: Sequence[str], *, longest: int = LONGEST, **columns: Any
    ) -> Self:
        """A corpus from word ids in reading order; without `sentence_ends`, a document is one sentence.

        No document may have more words than `longest`.
        """
        ends, words = np.asarray(token_ends, dtype=np.int64), unrepeated(vocabulary)
        check_token_ids(np.asarray(tokens), len(words))
        check_lengths(np.diff(ends, prepend=0), longest)
        tokens = np.asarray(tokens, dtype=np.int32)
        _check_order(tokens, ends, ends, len(ends), len(words))
        sentence_ends = merge_ends(np.asarray(columns.pop("sentence_ends", ends), dtype=np.int64), ends)
        known = _as_columns(columns.pop("name", "tokens"), columns)
        if "keys" not in known:
            _agree_columns(known, len(ends))
            known["keys"] = _keyed(known["name"], names_of_tokens(tokens, ends, sentence_ends, words, known))
        order: dict[str, Any] = {"tokens": tokens, "token_ends": ends, "sentence_ends": sentence_ends}
        return cls(counted_tokens(tokens, ends, len(words)), words, **order, **known)

    # ---- figures of documents ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<Corpus {self.name!r}: {len(self)} documents, {len(self.vocabulary)} words>"

    def lengths(self) -> Array:
        """Words in each document."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64).ravel()

    def document_frequencies(self) -> Array:
        """The number of documents in which each word occurs."""
        return np.bincount(self.counts.indices, minlength=len(self.vocabulary)).astype(np.int64)

    @property
    def has_sentences(self) -> bool:
        """Whether it is known where sentences end."""
        return self.sentence_ends is not None

    @property
    def embedding_width(self) -> int:
        """Numbers in the embedding of a document; 0: there are no embeddings."""
        return 0 if self.embeddings is None else self.embeddings.shape[-1]

    def parts(self) -> Iterator[tuple[Array, Self]]:
        """All documents, and the place of each: they are in memory."""
        yield np.arange(len(self)), self

    # ---- other corpora made of this one ----------------------------------------------------------------------------

    def select(self, rows: Array) -> Self:
        """The documents with these row numbers, in that order; or those where a Boolean mask is true."""
        wanted = row_numbers(rows, len(self))
        chosen: dict[str, Any] = {"counts": self.counts[wanted], "keys": self.keys[wanted], **self._ordered(wanted)}
        for column in (*COLUMNS, "block_numbers"):
            entries = getattr(self, column)
            chosen[column] = None if entries is None else entries[wanted]
        return replace(self, **chosen)

    def in_blocks(self) -> Self:
        """A party's whole corpus in blocks of `block_documents`, each person's documents in one. If it fits into one it stays.

        Where one block holds all, they are in the order of their keys, so that a shuffled file gives the same bytes. In more
        than one they stay in the order of the file, on which only the rounding of sums then depends. What is made of it
        later leaves each document in its block.
        """
        if self.block_numbers is not None:
            return self
        if len(self) <= self.block_documents:
            return self._in_order(by_key(self.keys, self.persons))
        ordered = self if self.persons is None else self.select(by_person(self.persons))
        return replace(ordered, block_numbers=numbered(len(self), self.block_documents, ordered.persons))

    def _in_order(self, rows: Array) -> Self:
        return self if np.array_equal(rows, np.arange(len(self))) else self.select(rows)

    def project(self, vocabulary: Sequence[str]) -> Self:
        """The same documents over another vocabulary. Words outside it disappear, documents never do (they may be empty)."""
        words = tuple(vocabulary)
        return self if words == self.vocabulary else self.renumbered(words, places_of(self.vocabulary, words))

    def renumbered(self, words: tuple[str, ...], places: Array) -> Self:
        """The same documents over these words, where the place of each own word among them is known; -1: it disappears."""
        projected = replace(self, counts=_moved_columns(self.counts, places, len(words)), vocabulary=words, **NO_ORDER)
        if self.tokens is None:
            return projected
        kept = places[self.tokens] >= 0
        return replace(projected, **{**self._order_of(kept), "tokens": places[self.tokens[kept]]})

    def without_persons(self) -> Self:
        """The same documents, each as if it were of a person of its own."""
        return replace(self, persons=None)

    def of_party(self, rows: Array, name: str) -> Self:
        """The documents of one party of a simulation, as a corpus of its own."""
        held = replace(self, block_numbers=None).select(rows)
        return replace(held, name=name, parties=np.full(len(rows), name), skipped=0, dropped=())

    def in_source_order(self) -> Self:
        """The documents in the order in which they were read: they are."""
        return self

    def rekeyed(self, name: str) -> Self:
        """The same documents under keys derived from theirs and this name: for two sources with one name."""
        return replace(self, keys=mixed(self.keys, f"rekeyed {name}"), name=name)

    def named_by_place(self) -> Self:
        """The same documents under keys of their places, for a guarantee whose neighbours differ in words and not in places.

        There the key of a document must not depend on its words, or one other word would move it to the other side of a split.
        """
        return replace(self, keys=document_keys(self.name, len(self)))

    def split(self, fraction: float = 0.75, seed: int = 0) -> tuple[Self, Self]:
        """(train, held out). Each document's key decides, so that parties and centre split alike.

        The least key of a person's documents decides for all of them. Sizes are about the fraction, not exactly.
        """
        train = in_train(least_keys(self.keys, self.persons), fraction, seed)
        return self.select(np.flatnonzero(train)), self.select(np.flatnonzero(~train))

    def halves(self, seed: int = 0) -> tuple[Self, Self]:
        """(seen, unseen): each document's words divided at random, for document completion. Both keep all keys.

        The seen half of an odd number of words is one word longer, so that only the unseen half of a document may be empty.
        """
        if self.tokens is not None and self.token_ends is not None:
            tokens, ends = self.tokens, self.token_ends
        else:  # any order will do
            tokens, ends = np.repeat(self.counts.indices, self.counts.data).astype(np.int32), np.cumsum(self.lengths())
        lengths = np.diff(ends, prepend=0)
        document = np.repeat(np.arange(len(self)), lengths)
        within = np.arange(len(tokens)) - np.repeat(ends - lengths, lengths)
        draw = mixed(mixed(self.keys, seed)[document] + within.astype(np.uint64), 1)
        rank = np.empty(len(tokens), dtype=np.int64)
        rank[np.lexsort((draw, document))] = within
        seen = rank < ((lengths + 1) // 2)[document]
        return self._thinned(tokens, ends, seen), self._thinned(tokens, ends, ~seen)

    # ---- reading order ---------------------------------------------------------------------------------------------

    def _thinned(self, tokens: Array, ends: Array, kept: Array) -> Self:
        passed = np.concatenate([[0], np.cumsum(kept)])
        counts = counted_tokens(tokens[kept], passed[ends], len(self.vocabulary))
        return replace(self, counts=counts, **(NO_ORDER if self.tokens is None else self._order_of(kept)))

    def _order_of(self, kept: Array) -> dict[str, Any]:
        """The reading order of the kept tokens, without sentences that lost every word."""
        assert self.tokens is not None
        assert self.token_ends is not None
        assert self.sentence_ends is not None
        passed = np.concatenate([[0], np.cumsum(kept)])
        token_ends = passed[self.token_ends]
        return {
            "tokens": self.tokens[kept],
            "token_ends": token_ends,
            "sentence_ends": merge_ends(passed[self.sentence_ends], token_ends),
        }

    def _ordered(self, rows: Array) -> dict[str, Array | None]:
        if self.tokens is None or self.token_ends is None or self.sentence_ends is None:
            return {}
        return {**order_of(self.tokens, self.token_ends, self.sentence_ends, rows)}


NO_ORDER: dict[str, Any] = {"tokens": None, "token_ends": None, "sentence_ends": None}


def unrepeated(vocabulary: Sequence[str]) -> tuple[str, ...]:
    """The vocabulary. Refuses a word that has two columns."""
    words = tuple(str(word) for word in vocabulary)
    _agree("distinct words", len(set(words)), len(words))
    return words


def places_of(vocabulary: Sequence[str], words: Sequence[str]) -> Array:
    """The place of each word of the vocabulary among these words; -1 for one that is not there."""
    place = {word: i for i, word in enumerate(unrepeated(words))}
    return np.fromiter((place.get(word, -1) for word in vocabulary), np.int32, len(vocabulary))


def merge_ends(sentence_ends: Array, token_ends: Array) -> Array:
    """Ends of sentences that hold a word; the end of a document is one of them."""
    both = np.unique(np.concatenate([sentence_ends, token_ends]).astype(np.int64))
    return both[both > 0]


def counted_tokens(tokens: Array, ends: Array, size: int) -> Any:
    """Counts of tokens in reading order, a block of documents at a time to save memory.

    A block's tokens already are the columns of a CSR array that names a column more than once.
    """
    blocks: list[Any] = []
    first = begin = 0
    while first < len(ends) or not blocks:
        last = max(first + 1, int(np.searchsorted(ends, begin + _BLOCK)))
        starts = np.concatenate([[0], ends[first:last] - begin])
        end = begin + int(starts[-1])
        data = np.ones(end - begin, np.int32)
        counts = sparse.csr_array((data, tokens[begin:end].copy(), starts), shape=(len(starts) - 1, size))
        counts.sum_duplicates()
        blocks.append(counts.copy())
        first, begin = last, end
    return blocks[0] if len(blocks) == 1 else sparse.csr_array(sparse.vstack(blocks, format="csr", dtype=np.int32))


def _moved_columns(counts: Any, moved: Array, size: int) -> Any:
    kept = moved[counts.indices] >= 0
    starts = np.concatenate([[0], np.cumsum(kept)])[counts.indptr]
    projected = sparse.csr_array((counts.data[kept], moved[counts.indices[kept]], starts), shape=(counts.shape[0], size))
    projected.sort_indices()
    return projected


def least_keys(keys: Array, persons: Array | None) -> Array:
    """The least key of each document's person: unlike the person's number, it is the same after `concat`."""
    if persons is None:
        return keys
    people, member = np.unique(persons, return_inverse=True)
    least = np.full(len(people), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, member, keys)
    return least[member]


def in_train(keys: Array, fraction: float, seed: int) -> Array:
    """Which documents a split puts into its first part, by the keys that decide."""
    if not 0.0 <= fraction <= 1.0:
        raise BadSetting("split", "fraction", str(fraction), "must lie between 0 and 1")
    return np.asarray((mixed(keys, seed) >> np.uint64(11)) < np.uint64(round(fraction * 2**53)))


def row_numbers(rows: Any, documents: int) -> Array:
    """The numbers of the chosen documents, of which none is below zero, from numbers or a Boolean mask."""
    wanted = np.asarray(rows)
    if wanted.dtype == np.bool_:
        _agree("entries of the mask", len(wanted), documents)
        return np.flatnonzero(wanted)
    if len(wanted) and (wanted.min() < -documents or wanted.max() >= documents):
        raise UnlikeParts("documents", documents, int(max(wanted.max() + 1, -wanted.min())))
    return wanted.astype(np.int64) % max(documents, 1)


def by_key(keys: Array, persons: Array | None) -> Array:
    """The order of documents by their keys alone; each person's are together, where the least of their keys belongs."""
    return np.lexsort((keys, least_keys(keys, persons)))


def _as_columns(name: str, columns: dict[str, Any]) -> dict[str, Any]:
    given = {n: np.asarray(v, dtype=_KINDS[n]) if n in _KINDS and v is not None else v for n, v in columns.items()}
    if given.get("keys", ...) is None:
        del given["keys"]
    people = "" if given.get("persons") is None else name
    return {"name": name, "people": people, **given}


def keys_of_counts(counts: Any, vocabulary: Sequence[str], embeddings: Array | None = None) -> Array:
    """The keys of documents of which no more is known, and whose source has no name."""
    return _keyed("", names_of_counts(counts, vocabulary, {"embeddings": embeddings}))


def _keyed(name: str, digests: Array) -> Array:
    return content_keys(secret_of(name), digests, copy_numbers(digests))


def _agree_columns(columns: dict[str, Any], rows: int) -> None:
    for column in COLUMNS:
        entries = columns.get(column)
        _agree(column, rows if entries is None else len(entries), rows)


def _agree(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise UnlikeParts(what, found, expected)


def _check_order(tokens: Array, token_ends: Array | None, sentence_ends: Array | None, rows: int, size: int) -> None:
    if token_ends is None or sentence_ends is None:
        raise UnlikeParts("token ends", 0, rows)
    _agree("token ends", len(token_ends), rows)
    _agree("tokens", len(tokens), int(token_ends[-1]) if rows else 0)
    if rows and np.diff(token_ends, prepend=0).min() < 0:
        raise UnlikeParts("token ends in rising order", 0, rows)
    if len(tokens) and (tokens.min() < 0 or tokens.max() >= size):
        raise UnlikeParts("words", size, int(tokens.max()) + 1)
