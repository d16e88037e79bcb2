"""The corpus: documents over one vocabulary, in memory or on disk, in blocks.

Nothing here depends on what other parties hold: every random choice about a document depends on its key, which no other
document and no place in a file changes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from securetm.contracts import BLOCK_DOCUMENTS, Array
from securetm.corpus.blocks import Block, by_person, check_whole, numbered, places_of_each, read_arrays, save_arrays
from securetm.corpus.building import documents_of_strings
from securetm.corpus.document_names import mixed, names_of_counts, names_of_tokens
from securetm.corpus.given_texts import GLANCE, tokeniser_of
from securetm.corpus.held_documents import (
    HeldDocuments,
    as_arrays,
    check_columns,
    check_counts,
    check_equal,
    check_lengths,
    check_order,
    counted_tokens,
    joined,
    keyed,
    merge_ends,
    unlike_parts,
    unrepeated,
)
from securetm.corpus.records import Dropped, damaged_file
from securetm.corpus.store import is_stored, opened, other_version
from securetm.corpus.stored_documents import StoredDocuments, whole_corpus_needed
from securetm.corpus.tokeniser import LONGEST, Tokeniser
from securetm.data_classes import dataclass, fields
from securetm.errors import BadSetting
from securetm.extras import sparse

_VERSION = 2  # of the file that `save` writes


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """A collection of documents over one vocabulary (contracts.BlockedDocuments). Row i of every column is document i.

    What is made of a corpus on disk (other rows, other words) is on disk too, and no document is read for it.
    """

    documents: HeldDocuments | StoredDocuments
    name: str = ""
    people: str = ""  # the numbering of `persons`: equal numbers of two numberings are two people
    skipped: int = 0  # documents without a word that the reader left out
    dropped: tuple[Dropped, ...] = ()  # documents that are not here, by reason; it is not saved
    block_documents: int = BLOCK_DOCUMENTS
    block_numbers: Array | None = None  # the block of each document
    as_stored: bool = False  # without these: whether they are in the blocks in which they are stored, or all in one
    perturbed: ClassVar[None] = None  # no noise stands in for its words

    # ---- making documents ------------------------------------------------------------------------------------------

    @classmethod
    def from_strings(cls, texts: Iterable[str], *, tokeniser: Tokeniser | None = None, **columns: Any) -> Self:
        """A corpus from texts, as scikit-learn takes them; labels=, persons=, ... have one entry per text, name= gives keys.

        Without a tokeniser, markup and quotes are dropped and stop words are those of the texts' language; a warning names
        another one than English. Parties, and later texts, need the same tokeniser: give it to each.
        """
        if tokeniser is None:
            left = iter(texts)
            first = list(islice(left, GLANCE))
            tokeniser, texts = tokeniser_of(first), chain(first, left)
        return cls(*documents_of_strings(texts, tokeniser=tokeniser, **columns))

    @classmethod
    def from_counts(
        cls, matrix: Any, vocabulary: Sequence[str], *, name: str = "counts", longest: int = LONGEST, **columns: Any
    ) -> Self:
        """A corpus without reading order: `matrix` is dense or sparse, documents x vocabulary.

        No document may have more words than `longest`.
        """
        facts, known, words = _facts_among(columns, name), as_arrays(columns), unrepeated(vocabulary)
        given = sparse.csr_array(matrix)
        check_counts(given, longest)
        counts = given.astype(np.int32)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        check_equal("columns of counts", counts.shape[1], len(words))
        if known.get("keys") is None:
            check_columns(known, counts.shape[0])
            known["keys"] = keyed(name, names_of_counts(counts, words, known))
        return cls(HeldDocuments(counts, words, **known), **facts)

    @classmethod
    def from_tokens(
        cls,
        tokens: Array,
        token_ends: Array,
        vocabulary: Sequence[str],
        *,
        name: str = "tokens",
        longest: int = LONGEST,
        **columns: Any,
    ) -> Self:
        """A corpus from word ids in reading order; without `sentence_ends`, a document is one sentence.

        No document may have more words than `longest`.
        """
        facts, known, words = _facts_among(columns, name), as_arrays(columns), unrepeated(vocabulary)
        ends, tokens = np.asarray(token_ends, dtype=np.int64), np.asarray(tokens)
        if tokens.size and (tokens.dtype.kind not in "iu" or tokens.min() < 0 or tokens.max() >= len(words)):
            raise unlike_parts("words", len(words), int(tokens.max()) + 1)
        check_lengths(np.diff(ends, prepend=0), longest)
        tokens = tokens.astype(np.int32, copy=False)
        check_order(tokens, ends, ends, len(ends), len(words))
        sentence_ends = merge_ends(np.asarray(known.pop("sentence_ends", ends), dtype=np.int64), ends)
        if known.get("keys") is None:
            check_columns(known, len(ends))
            known["keys"] = keyed(name, names_of_tokens(tokens, ends, sentence_ends, words, known))
        known |= {"tokens": tokens, "token_ends": ends, "sentence_ends": sentence_ends}
        return cls(HeldDocuments(counted_tokens(tokens, ends, len(words)), words, **known), **facts)

    @classmethod
    def concat(cls, corpora: Sequence[Self], *, name: str = "") -> Self:
        """All documents in one corpus, over the union of their vocabularies in alphabetical order. Keys are kept.

        Two documents with the same key are refused: a party would count the document twice.
        """
        if not corpora:
            return cls(HeldDocuments(sparse.csr_array((0, 0), dtype=np.int32), (), np.zeros(0, np.uint64)), name)
        vocabulary = tuple(sorted(set().union(*(corpus.vocabulary for corpus in corpora))))
        parts = [corpus.gathered().project(vocabulary) for corpus in corpora]
        persons, people = _joined_persons(parts)
        return cls(
            joined([part.documents.read() for part in parts], persons),
            name or "+".join(dict.fromkeys(part.name for part in parts if part.name)),
            people,
            sum(part.skipped for part in parts),
            tuple(one for part in parts for one in part.dropped),
        )

    @classmethod
    def open(cls, folder: str | Path, name: str | None = None, secret: bytes = b"") -> Self:
        """Opens a folder that `securetm corpus build` wrote. The name and the secret make the documents' keys."""
        store = opened(Path(folder))
        manifest = store.manifest
        named = name or manifest.name
        people = f"{named} {manifest.digest[:16]}" if "person" in manifest.names else ""
        documents, skipped = StoredDocuments(store, named, secret), manifest.read - manifest.documents
        return cls(documents, named, people, skipped, manifest.dropped, manifest.block_documents, as_stored=True)

    # ---- columns and figures ---------------------------------------------------------------------------------------

    vocabulary = property(attrgetter("documents.vocabulary"), doc="The words.")
    keys = property(attrgetter("documents.keys"), doc="The key of each document.")
    persons = property(attrgetter("documents.persons"), doc="Whose each document is, if it is known.")
    labels = property(attrgetter("documents.labels"), doc="The label of each document.")
    parties = property(attrgetter("documents.parties"), doc="The party of each document.")
    dates = property(attrgetter("documents.dates"), doc="The date of each document.")
    texts = property(attrgetter("documents.texts"), doc="The digest of each document's text.")
    folder = property(attrgetter("documents.folder"), doc="Where they lie; None: they are in memory.")
    has_sentences = property(attrgetter("documents.has_sentences"), doc="Whether it is known where sentences end.")
    embedding_width = property(attrgetter("documents.embedding_width"), doc="Numbers in the embedding of a document, or 0.")

    # Of documents on disk all are read for these, or refused.
    counts = property(lambda self: self.gathered().documents.counts, doc="The counts: documents x vocabulary.")
    tokens = property(lambda self: self.gathered().documents.tokens, doc="The words of all documents in reading order.")
    token_ends = property(lambda self: self.gathered().documents.token_ends, doc="Where each document ends in `tokens`.")
    sentence_ends = property(lambda self: self.gathered().documents.sentence_ends, doc="Where each sentence ends in `tokens`.")
    embeddings = property(lambda self: self.gathered().documents.embeddings, doc="The embedding of each document.")

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        where = "" if self.folder is None else " on disk"
        return f"<Corpus {self.name!r}{where}: {len(self)} documents, {len(self.vocabulary)} words>"

    def lengths(self) -> Array:
        """Words in each document."""
        found = np.zeros(len(self), dtype=np.int64)
        for places, part in self.parts():
            found[places] = np.asarray(part.counts.sum(axis=1)).ravel()
        return found

    def document_frequencies(self) -> Array:
        """The number of documents in which each word occurs."""
        found = np.zeros(len(self.vocabulary), dtype=np.int64)
        for _, part in self.parts():
            found += np.bincount(part.counts.indices, minlength=len(self.vocabulary))
        return found

    def parts(self) -> Iterator[tuple[Array, Self]]:
        """All documents, a part in memory at a time, and the place of each."""
        if self.documents.stored_blocks == 1:
            yield np.arange(len(self)), self.read()
            return
        for places in self.documents.by_stored_block():
            yield np.asarray(places), self.select(places).read()

    def read(self) -> Self:
        """The documents in memory, however many they are."""
        held = self.documents.read()
        return self if held is self.documents else type(self)(held, self.name, self.people)

    def gathered(self) -> Self:
        """All documents in memory, in their order. Refused where they are more than a block of several."""
        if self.documents.stored_blocks > 1 and len(self) > max(BLOCK_DOCUMENTS, self.block_documents):
            raise whole_corpus_needed("this question", self.documents.folder)
        return self.read()

    # ---- other corpora made of this one ----------------------------------------------------------------------------

    def select(self, rows: Array | range) -> Self:
        """The documents with these row numbers, in that order; or those where a Boolean mask is true."""
        wanted = rows if isinstance(rows, range) else row_numbers(rows, len(self))
        numbers = None if self.block_numbers is None else self.block_numbers[np.asarray(wanted)]
        return dataclasses.replace(self, documents=self.documents.select(wanted), block_numbers=numbers)

    def project(self, vocabulary: Sequence[str]) -> Self:
        """The same documents over another vocabulary. Words outside it disappear, documents never do (they may be empty)."""
        words = unrepeated(vocabulary)
        return self if words == self.vocabulary else dataclasses.replace(self, documents=self.documents.over(words))

    def renamed(self, names: Sequence[str]) -> Self:
        """The same documents, each word of the vocabulary under another name. Words of one name are then one word."""
        check_equal("names", len(names), len(self.vocabulary))
        return dataclasses.replace(self, documents=self.documents.renamed(tuple(names)))

    def split(self, fraction: float = 0.75, seed: int = 0) -> tuple[Self, Self]:
        """(train, held out). Each document's key decides, so that parties and centre split alike.

        The least key of a person's documents decides for all of them. Sizes are about the fraction, not exactly.
        """
        if not 0.0 <= fraction <= 1.0:
            raise BadSetting("split", "fraction", str(fraction), "must lie between 0 and 1")
        draws = mixed(least_keys(self.keys, self.persons), seed) >> np.uint64(11)
        train = np.asarray(draws < np.uint64(round(fraction * 2**53)))
        return self.select(np.flatnonzero(train)), self.select(np.flatnonzero(~train))

    def halves(self, seed: int = 0) -> tuple[Self, Self]:
        """(seen, unseen) in memory: each document's words divided at random, for document completion. Both keep all keys."""
        whole = self.gathered()
        seen, unseen = whole.documents.read().halves(seed)
        return dataclasses.replace(whole, documents=seen), dataclasses.replace(whole, documents=unseen)

    def replace(self, **changes: Any) -> Self:
        """The same documents with another name, other columns (embeddings=, persons=, ...), or divided into other blocks."""
        columns = {_COLUMNS[name]: changes.pop(name) for name in [*changes] if name in _COLUMNS}
        if columns:
            changes["documents"] = dataclasses.replace(self.gathered().documents.read(), **columns)
        changed = dataclasses.replace(self, **changes)
        if changed.block_numbers is not None:
            check_equal("block_numbers", len(changed.block_numbers), len(changed))
            if changed.persons is not None:
                check_whole(changed.persons, changed.block_numbers)
        return changed

    def without_persons(self) -> Self:
        """The same documents, each as if it were of a person of its own."""
        return dataclasses.replace(self, documents=self.documents.without_persons(), people="")

    def of_party(self, rows: Array, name: str) -> Self:
        """The documents of one party of a simulation: a corpus of its own, which is not yet in blocks."""
        held = self.select(rows).documents.of_party(name)
        return type(self)(held, name, self.people, block_documents=self.block_documents)

    def in_source_order(self) -> Self:
        """The documents in the order in which they were read."""
        order = self.documents.source_order()
        return self if order is None else self.select(order)

    def rekeyed(self, name: str) -> Self:
        """The same documents under keys derived from theirs and this name: for two sources with one name."""
        return self.replace(keys=mixed(self.keys, f"rekeyed {name}"), name=name)

    def named_by_place(self) -> Self:
        """The same documents under keys of their places, for a guarantee whose neighbours differ in words and not in places.

        There the key of a document must not depend on its words, or one other word would move it to the other side of a split.
        """
        return dataclasses.replace(self, documents=self.documents.named_by_place(self.name))

    # ---- blocks ----------------------------------------------------------------------------------------------------

    def in_blocks(self) -> Self:
        """A party's whole corpus in blocks of `block_documents`, each person's documents in one. One on disk is stored so.

        Where one block holds all, they are in the order of their keys, so that a shuffled file gives the same bytes. In more
        than one they stay in the order of the file, on which only the rounding of sums then depends. What is made of it
        later leaves each document in its block.
        """
        if self.block_numbers is not None or (self.as_stored and self.documents.stored_blocks > 1):
            return self
        if len(self) <= self.block_documents:
            # The documents of a person are together, where the least of their keys belongs.
            order = np.lexsort((self.keys, least_keys(self.keys, self.persons)))
            return self if np.array_equal(order, np.arange(len(self))) else self.select(order)
        if self.as_stored:
            return self
        ordered = self if self.persons is None else self.select(by_person(self.persons))
        return dataclasses.replace(ordered, block_numbers=numbered(len(self), self.block_documents, ordered.persons))

    def blocks(self) -> Sequence[Block]:
        """The blocks that have a document, by number; of no documents, one empty block."""
        documents, divided = self.documents, list[tuple[int, Any]]()
        if self.block_numbers is not None:
            divided = [(int(self.block_numbers[rows[0]]), rows) for rows in places_of_each(self.block_numbers)]
        elif self.as_stored:
            divided = [(documents.block_at(rows[0]), rows) for rows in documents.by_stored_block()]
        undivided = dataclasses.replace(self, block_numbers=None, as_stored=False)
        return [
            Block(number, undivided, rows, documents.shard(0 if rows is None else rows[0]))
            for number, rows in divided or [(0, None)]
        ]

    # ---- in a file -------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes one file without pickle, whole or not at all; of documents on disk, which they are."""
        held, arrays = self.documents.kept()
        own = {name: getattr(self, name) for name in ("name", "people", "skipped", "block_documents", "as_stored")}
        facts = json.dumps({"version": _VERSION, "documents": held, "corpus": own})
        if self.block_numbers is not None:
            arrays["block_numbers"] = self.block_numbers
        save_arrays(Path(path), {"facts": np.frombuffer(facts.encode(), np.uint8), **arrays})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads what `save` wrote, or opens a folder that `securetm corpus build` wrote, checked."""
        path = Path(path)
        if is_stored(path):
            return cls.open(path)
        arrays = read_arrays(path)
        try:
            facts = json.loads(arrays["facts"].tobytes()) if "facts" in arrays else {}
            if (version := int(facts.get("version", -1))) != _VERSION:
                raise other_version(str(path), version, _VERSION)
            held = facts["documents"]
            documents = (StoredDocuments if "folder" in held else HeldDocuments).of_kept(held, arrays)
            corpus, numbers = cls(documents, **facts["corpus"]), arrays.get("block_numbers")
            return corpus if numbers is None else corpus.replace(block_numbers=numbers)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as fault:
            raise damaged_file(path, f"its parts do not fit together ({type(fault).__name__})") from fault


_FACTS = ("people", "skipped", "dropped", "block_documents", "block_numbers")
_COLUMNS = {**{column.name: column.name for column in fields(HeldDocuments)}, "counts": "given_counts"}


def _facts_among(columns: dict[str, Any], name: str) -> dict[str, Any]:
    """What is no column is taken out of these."""
    people = "" if columns.get("persons") is None else name
    return {"name": name, "people": people} | {fact: columns.pop(fact) for fact in _FACTS if fact in columns}


def _joined_persons(parts: Sequence[Corpus]) -> tuple[Array | None, str]:
    """The persons of all parts: equal numbers are one person only within one numbering.

    A document that names nobody becomes a person of its own: dropping the column would weaken the unit of privacy.
    """
    if all(part.persons is None for part in parts):
        return None, ""
    shifts: dict[str, int] = {}
    free = 0
    columns: list[Array] = []
    for part in parts:
        numbers = np.arange(len(part)) if part.persons is None else part.persons
        numbering = f"documents of {len(columns)}" if part.persons is None else part.people
        if numbering not in shifts:
            shifts[numbering] = free
            alike = (other.persons for other in parts if other.people == numbering and len(other))
            free += 1 + max((int(persons.max()) for persons in alike if persons is not None), default=len(part))
        columns.append(numbers + shifts[numbering])
    return np.concatenate(columns).astype(np.int64), "+".join(sorted(shifts))


def least_keys(keys: Array, persons: Array | None) -> Array:
    """The least key of each document's person: unlike the person's number, it is the same after `concat`."""
    if persons is None:
        return keys
    people, member = np.unique(persons, return_inverse=True)
    least = np.full(len(people), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, member, keys)
    return least[member]


def row_numbers(rows: Any, documents: int) -> Array:
    """The numbers of the chosen documents, of which none is below zero, from numbers or a Boolean mask."""
    wanted = np.asarray(rows)
    if wanted.dtype == np.bool_:
        check_equal("entries of the mask", len(wanted), documents)
        return np.flatnonzero(wanted)
    if len(wanted) and (wanted.min() < -documents or wanted.max() >= documents):
        raise unlike_parts("documents", documents, int(max(wanted.max() + 1, -wanted.min())))
    return wanted.astype(np.int64) % max(documents, 1)
