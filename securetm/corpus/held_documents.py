"""Documents in memory: their counts, their words in reading order, and a few columns. Row i of everything is document i."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Array
from securetm.corpus.document_names import (
    content_digests,
    content_keys,
    copy_numbers,
    document_keys,
    mixed,
    names_of_counts,
    secret_of,
)
from securetm.corpus.store import order_of
from securetm.corpus.tokeniser import MOST, check_longest
from securetm.data_classes import dataclass, replace
from securetm.errors import BadSetting, Mistake
from securetm.extras import sparse

_BLOCK = 1 << 19  # tokens that are counted at once
_NAMES = ("labels", "parties", "dates")
_ORDER = ("tokens", "token_ends", "sentence_ends")
_KINDS: dict[str, Any] = {
    **dict.fromkeys(_NAMES, np.str_),
    "embeddings": np.float32,
    "persons": np.int64,
    "keys": np.uint64,
    "texts": np.uint8,
}
COLUMNS = (*_NAMES, "embeddings", "persons", "texts")  # one entry per document, if there at all
NO_ORDER: dict[str, Any] = dict.fromkeys(_ORDER)


@dataclass(frozen=True, eq=False)
class HeldDocuments:
    """A collection of documents over one vocabulary.

    Where the order of words is known, `tokens` holds word ids in reading order, all documents end to end; `token_ends` says
    where each document ends and `sentence_ends` where each sentence ends. No sentence is empty, and a document's end is always
    the end of a sentence.
    """

    given_counts: Any  # None where tokens are known: `counts` are made of them when somebody asks
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
    texts: Array | None = None  # 16 bytes of a digest of each document's text, where it was read from one
    folder: ClassVar[None] = None  # they are in no file
    stored_blocks: ClassVar[int] = 1
    embedded_as: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.given_counts is not None:
            check_equal("rows of counts", self.given_counts.shape[0], len(self))
            check_equal("columns of counts", self.given_counts.shape[1], len(self.vocabulary))
        check_columns({column: getattr(self, column) for column in COLUMNS}, len(self))
        if self.tokens is not None:
            check_order(self.tokens, self.token_ends, self.sentence_ends, len(self), len(self.vocabulary))

    @cached_property
    def counts(self) -> Any:
        """A CSR array of int32, documents x vocabulary, without stored zeros."""
        if self.given_counts is not None:
            return self.given_counts
        return counted_tokens(self.tokens, self.token_ends, len(self.vocabulary))

    @classmethod
    def of_columns(
        cls,
        columns: Mapping[str, Array],
        counts: Any,
        vocabulary: tuple[str, ...],
        keys: Array,
        names: Mapping[str, Array],
        *,
        with_persons: bool,
    ) -> HeldDocuments:
        """Documents of the columns of a block; `names` of labels, parties and dates by their numbers there."""
        known: dict[str, Any] = {name: columns.get(name) for name in (*_ORDER, "embeddings", "texts")}
        roles = zip(_NAMES, ("label", "party", "date"), strict=True)
        known |= {name: names[role][columns[role]] for name, role in roles if role in names}
        persons = columns["person"].astype(np.int64) - 1 if with_persons else None  # number 0 stands for no name
        return cls(counts, vocabulary, keys, **known, persons=persons)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def has_sentences(self) -> bool:
        """Whether it is known where sentences end."""
        return self.sentence_ends is not None

    @property
    def embedding_width(self) -> int:
        """Numbers in the embedding of a document; 0: there are no embeddings."""
        return 0 if self.embeddings is None else int(self.embeddings.shape[-1])

    def read(self) -> HeldDocuments:
        """These: they are in memory."""
        return self

    def by_stored_block(self) -> Iterable[Array | range]:
        """All in one part."""
        return [range(len(self))]

    def block_at(self, place: int) -> int:  # noqa: ARG002
        """They are all in one."""
        return 0

    def shard(self, place: int) -> str:  # noqa: ARG002
        """They are in no file."""
        return ""

    def source_order(self) -> Array | None:
        """They are in the order in which they were read."""
        return None

    # ---- other documents made of these -------------------------------------------------------------------------------

    def select(self, rows: Array | range) -> HeldDocuments:
        """The documents with these row numbers, in that order."""
        wanted = np.asarray(rows)
        order: dict[str, Any] = {}
        if self.tokens is not None and self.token_ends is not None and self.sentence_ends is not None:
            order = order_of(self.tokens, self.token_ends, self.sentence_ends, wanted)
        known = {column: getattr(self, column) for column in COLUMNS}
        columns = {column: entries[wanted] for column, entries in known.items() if entries is not None}
        counts = vars(self).get("counts", self.given_counts)  # also if they were made by now
        counts = None if counts is None else counts[wanted]
        return replace(self, given_counts=counts, keys=self.keys[wanted], **order, **columns)

    def over(self, words: tuple[str, ...]) -> HeldDocuments:
        """The same documents in these words. Others disappear, documents never do (they may be empty)."""
        return self.renumbered(words, places_of(self.vocabulary, words))

    def renamed(self, names: tuple[str, ...]) -> HeldDocuments:
        """The same documents, each word under the name at its place. A projection puts words of one name together."""
        return replace(self, vocabulary=names)

    def renumbered(self, words: tuple[str, ...], places: Array) -> HeldDocuments:
        """The same documents over these words, where the place of each own word among them is known; -1: it disappears."""
        kept = places[self.counts.indices] >= 0
        starts = np.concatenate([[0], np.cumsum(kept)])[self.counts.indptr]
        moved = (self.counts.data[kept], places[self.counts.indices[kept]], starts)
        counts = sparse.csr_array(moved, shape=(len(self), len(words)))
        counts.sum_duplicates()  # and in order
        order = NO_ORDER
        if self.tokens is not None:
            kept = places[self.tokens] >= 0
            order = {**self._order_of(kept), "tokens": places[self.tokens[kept]]}
        return replace(self, given_counts=counts, vocabulary=words, **order)

    def halves(self, seed: int) -> tuple[HeldDocuments, HeldDocuments]:
        """(seen, unseen): each document's words divided at random, for document completion. Both keep all keys.

        The seen half of an odd number of words is one word longer, so that only the unseen half of a document may be empty.
        """
        if self.tokens is not None and self.token_ends is not None:
            tokens, ends = self.tokens, self.token_ends
        else:  # any order will do
            counted = np.asarray(self.counts.sum(axis=1), dtype=np.int64).ravel()
            tokens, ends = np.repeat(self.counts.indices, self.counts.data).astype(np.int32), np.cumsum(counted)
        lengths = np.diff(ends, prepend=0)
        document = np.repeat(np.arange(len(self)), lengths)
        within = np.arange(len(tokens)) - np.repeat(ends - lengths, lengths)
        draw = mixed(mixed(self.keys, seed)[document] + within.astype(np.uint64), 1)
        rank = np.empty(len(tokens), dtype=np.int64)
        rank[np.lexsort((draw, document))] = within
        seen = rank < ((lengths + 1) // 2)[document]
        return self._thinned(tokens, ends, seen), self._thinned(tokens, ends, ~seen)

    def without_persons(self) -> HeldDocuments:
        """The same documents, each as if it were of a person of its own."""
        return replace(self, persons=None)

    def of_party(self, name: str) -> HeldDocuments:
        """The same documents, all of one party."""
        return replace(self, parties=np.full(len(self), name))

    def named_by_place(self, source: str) -> HeldDocuments:
        """The same documents under keys of their places."""
        return replace(self, keys=document_keys(source, len(self)))

    def _thinned(self, tokens: Array, ends: Array, kept: Array) -> HeldDocuments:
        passed = np.concatenate([[0], np.cumsum(kept)])
        counts = counted_tokens(tokens[kept], passed[ends], len(self.vocabulary))
        return replace(self, given_counts=counts, **(NO_ORDER if self.tokens is None else self._order_of(kept)))

    def _order_of(self, kept: Array) -> dict[str, Any]:
        """The reading order of the kept tokens, without sentences that lost every word."""
        assert self.tokens is not None
        assert self.token_ends is not None
        assert self.sentence_ends is not None
        passed = np.concatenate([[0], np.cumsum(kept)])
        token_ends = passed[self.token_ends]
        sentence_ends = merge_ends(passed[self.sentence_ends], token_ends)
        return {"tokens": self.tokens[kept], "token_ends": token_ends, "sentence_ends": sentence_ends}

    # ---- in a file ---------------------------------------------------------------------------------------------------

    def kept(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What a file holds of them: words and names, and arrays in which names have numbers."""
        facts: dict[str, Any] = {"vocabulary": self.vocabulary}
        arrays = {f"counts.{part}": getattr(self.counts, part) for part in ("data", "indices", "indptr")}
        for column in ("keys", *_ORDER, *COLUMNS):
            entries = getattr(self, column)
            if entries is not None and column in _NAMES:
                names, entries = np.unique(entries, return_inverse=True)
                facts[column] = names.tolist()
            if entries is not None:
                arrays[column] = entries
        return facts, arrays

    @classmethod
    def of_kept(cls, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> HeldDocuments:
        """The documents of such a file. Of one that no corpus can have written, any error."""
        words = tuple(facts["vocabulary"])
        parts = tuple(arrays[f"counts.{part}"] for part in ("data", "indices", "indptr"))
        counts = sparse.csr_array(parts, shape=(len(arrays["keys"]), len(words)))
        counts.check_format(full_check=True)
        data = counts.data
        if data.dtype != np.int32 or (data.size and data.min() < 1) or (_lengths(counts) > MOST).any():
            raise ValueError("counts that no corpus has")
        columns = {column: arrays[column] for column in ("keys", *_ORDER, *COLUMNS) if column in arrays}
        names = {column: np.array(facts[column], dtype=np.str_)[columns[column]] for column in _NAMES if column in columns}
        try:
            return cls(counts, words, **(columns | names))
        except Mistake as fault:
            raise ValueError("columns that do not fit together") from fault


def joined(parts: Sequence[HeldDocuments], persons: Array | None) -> HeldDocuments:
    """All documents one after the other. All parts have the same words; the numbers of persons are given anew."""
    keys = np.concatenate([part.keys for part in parts])
    if repeated := len(keys) - len(np.unique(keys)):
        raise Mistake(
            "{repeated:document has|documents have} the same key as another one",
            hint="the same documents came in twice; if they are different documents of sources with one name, use "
            "rekeyed(NAME)",
            repeated=repeated,
        )
    columns: dict[str, Any] = {name: _joined(parts, name) for name in ("tokens", "embeddings")}
    columns |= {name: _joined(parts, name, missing="") for name in _NAMES}
    if columns["tokens"] is not None:
        before = np.cumsum([0, *(len(part.tokens) for part in parts[:-1])])  # type: ignore[arg-type]
        for name in ("token_ends", "sentence_ends"):
            shifted = zip((getattr(part, name) for part in parts), before, strict=True)
            columns[name] = np.concatenate([ends + shift for ends, shift in shifted])
    if any(part.texts is not None for part in parts):
        columns["texts"] = np.concatenate([content_digests(part) for part in parts])
    counts = sparse.csr_array(sparse.vstack([part.counts for part in parts], format="csr", dtype=np.int32))
    return HeldDocuments(counts, parts[0].vocabulary, keys, **columns, persons=persons)


def _joined(parts: Sequence[HeldDocuments], name: str, missing: str | None = None) -> Array | None:
    """The column of all parts, None where none has it. Parts that lack it are refused, or have `missing` in it."""
    found = [getattr(part, name) for part in parts]
    if all(entries is None for entries in found):
        return None
    if missing is not None:
        found = [np.full(len(part), missing) if one is None else one for one, part in zip(found, parts, strict=True)]
    if any(entries is None for entries in found) or len({one.shape[1:] for one in found}) > 1:
        raise Mistake(
            "some of these corpora have {what} and some have none, or of another width",
            hint="read them the same way, or drop {what} with corpus.replace({what}=None)",
            what=name,
        )
    return np.concatenate(found)


def unrepeated(vocabulary: Sequence[str]) -> tuple[str, ...]:
    """The vocabulary. Refuses a word that has two columns."""
    words = tuple(str(word) for word in vocabulary)
    check_equal("distinct words", len(set(words)), len(words))
    return words


def places_of(vocabulary: Sequence[str], words: Sequence[str]) -> Array:
    """The place of each word of the vocabulary among these words; -1 for one that is not there."""
    place = {word: i for i, word in enumerate(unrepeated(words))}
    return np.fromiter((place.get(word, -1) for word in vocabulary), np.int32, len(vocabulary))


def merge_ends(sentence_ends: Array, token_ends: Array) -> Array:
    """Ends of sentences that hold a word; the end of a document is one of them."""
    both = distinct(np.concatenate([sentence_ends, token_ends]).astype(np.int64))
    return both[both > 0]


def distinct(numbers: Array) -> Array:
    """Each number once, in order. `np.unique` would load masked arrays, for which a party that waits has no use."""
    ordered = np.sort(numbers, axis=None)
    first: Array = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return np.compress(first, ordered)


def counted_tokens(tokens: Any, ends: Any, size: int) -> Any:
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


def keys_of_counts(counts: Any, vocabulary: Sequence[str], embeddings: Array | None = None) -> Array:
    """The keys of documents of which no more is known, and whose source has no name."""
    return keyed("", names_of_counts(counts, vocabulary, {"embeddings": embeddings}))


def keyed(name: str, digests: Array) -> Array:
    """The keys of documents that are called so, of a source of that name."""
    return content_keys(secret_of(name), digests, copy_numbers(digests))


def as_arrays(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns as arrays, each of its type."""
    return {n: np.asarray(v, dtype=_KINDS[n]) if n in _KINDS and v is not None else v for n, v in columns.items()}


# ---- what is refused -------------------------------------------------------------------------------------------------


def check_lengths(lengths: Array, longest: int) -> None:
    """Refuses the first document that has more words than that."""
    if len(over := np.flatnonzero(lengths > longest)):
        raise too_many_words(f"document {int(over[0]) + 1:,}", f"{lengths[over[0]]:,.0f}", longest)


def too_many_words(where: str, words: str, longest: int) -> Mistake:
    """One document that is too long takes memory and time from all others of its party."""
    return Mistake(
        "{where} has {words} words, and a document has at most {longest:,}",
        hint="split it; or allow longer ones, as all parties must: `longest` in [tokeniser] of the plan, or `longest=` of a "
        "Tokeniser and of Corpus.from_counts",
        where=where,
        words=words,
        longest=longest,
    )


def unlike_parts(what: str, found: int, expected: int) -> Mistake:
    """Parts of a corpus that do not fit together."""
    return Mistake(
        "a corpus has {found} {what} where {expected} are needed",
        hint="a column has one entry per document, a vocabulary names every word once, and every word id lies inside it",
        what=what,
        found=found,
        expected=expected,
    )


def check_equal(what: str, found: int, expected: int) -> None:
    """Refuses parts of different lengths."""
    if found != expected:
        raise unlike_parts(what, found, expected)


def check_columns(columns: Mapping[str, Any], rows: int) -> None:
    """Refuses a column that has not one entry for each document."""
    for column in COLUMNS:
        entries = columns.get(column)
        check_equal(column, rows if entries is None else len(entries), rows)


def check_order(tokens: Array, token_ends: Array | None, sentence_ends: Array | None, rows: int, size: int) -> None:
    """Refuses a reading order that is none of so many documents over so many words."""
    if token_ends is None or sentence_ends is None:
        raise unlike_parts("token ends", 0, rows)
    check_equal("token ends", len(token_ends), rows)
    check_equal("tokens", len(tokens), int(token_ends[-1]) if rows else 0)
    if rows and np.diff(token_ends, prepend=0).min() < 0:
        raise unlike_parts("token ends in rising order", 0, rows)
    if len(tokens) and (tokens.min() < 0 or tokens.max() >= size):
        raise unlike_parts("words", size, int(tokens.max()) + 1)


def check_counts(counts: Any, longest: int) -> None:
    """Refuses counts that are negative or broken, and a document of more words than `longest`. They still are as given."""
    check_longest("from_counts", longest)
    if not counts.nnz:
        return
    data = counts.data
    if data.dtype.kind not in "biuf" or not np.isfinite(data).all() or (data != np.rint(data)).any() or data.min() < 0:
        raise BadSetting("from_counts", "matrix", "some entries", "must be whole numbers, zero or more")
    check_lengths(_lengths(counts), longest)


def _lengths(counts: Any) -> Array:
    lengths: Array = np.asarray(counts.astype(np.float64).sum(axis=1)).ravel()
    return lengths
