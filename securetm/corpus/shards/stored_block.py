"""One block of a corpus on disk (contracts.DocumentBlock): read where it is needed, with the party's memory beside it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import ON_DISK, Array, Keeping, Memory
from securetm.corpus.counted_documents import CountedDocuments, places_of
from securetm.corpus.keys import content_keys, document_keys, secret_of
from securetm.corpus.shards.block_columns import Columns, chosen_documents, counts_of, joined_documents
from securetm.corpus.shards.corpus_store import CorpusStore, store_at
from securetm.corpus.shards.single_documents import FEW
from securetm.corpus.stored import read_arrays, save_arrays

_MEMORY = "memory"  # the folder beside the shards


@dataclass(frozen=True, eq=False)
class Projection:
    """The words in which documents are read instead of their own. Pickled, it takes only the words with it."""

    store: CorpusStore
    words: tuple[str, ...] = field(repr=False)

    @property
    def places(self) -> Array:
        """The place of each stored word among these; -1 for one that is not there."""
        return _places(self.store.identity, self.words)

    def __reduce__(self) -> Any:
        return Projection, (self.store, self.words)


@dataclass(frozen=True, eq=False)
class StoredView:
    """How stored documents are shown: in which words, under which name, with or without persons."""

    store: CorpusStore
    source: str  # the name that makes keys with the secret, and that numbers persons
    name: str
    projection: Projection | None = None
    persons: bool = True
    party: str | None = None  # the name of the party that holds all of them
    secret: bytes = field(default=b"", repr=False)  # of whoever holds them, under which their names become keys
    by_place: bool = False  # whether their numbers make keys, and not what they say

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words in which documents are read."""
        return self.store.vocabulary if self.projection is None else self.projection.words

    @property
    def people(self) -> str:
        """The numbering of persons, which is of this store alone."""
        return f"{self.source} {self.store.manifest.digest[:16]}"

    def read(self, rows: Array | range) -> CountedDocuments:
        """The documents with these numbers in the store, in that order, in memory."""
        documents = self._documents(self._columns(rows))
        if self.projection is None:
            return documents
        return documents.renumbered(self.projection.words, self.projection.places)

    def keys(self, digests: Array, copies: Array, rows: Array) -> Array:
        """The keys of documents of which these are the columns."""
        if self.by_place:
            return document_keys(self.source, rows)
        return content_keys(secret_of(self.source, self.secret), digests, copies)

    def _columns(self, rows: Array | range) -> Columns:
        starts = self.store.starts
        if isinstance(rows, range) and rows == self.store.whole_block(rows.start):
            return self.store.columns(self.store.block_of(rows.start))
        numbers = np.asarray(rows, dtype=np.int64)
        home = np.searchsorted(starts, numbers, side="right") - 1
        own = numbers - starts[home]
        few = np.bincount(home, minlength=1)[home] <= FEW
        places, pieces = [], []
        if few.any() or not len(few):
            places, pieces = [np.flatnonzero(few)], [self.store.alone(home[few], own[few])]
        for many in _by_block(home, np.flatnonzero(~few)):
            places.append(many)
            pieces.append(chosen_documents(self.store.columns(int(home[many[0]])), own[many]))
        joined, order = joined_documents(pieces), np.concatenate(places)
        return joined if (np.diff(order) > 0).all() else chosen_documents(joined, np.argsort(order))

    def _documents(self, columns: Columns) -> CountedDocuments:
        names = self.store.names
        known = {role: names[role][columns[role]] if role in names else None for role in ("label", "party", "date")}
        if self.party is not None:
            known["party"] = np.full(len(columns["rows"]), self.party)
        persons = columns["person"].astype(np.int64) - 1 if self.persons and "person" in columns else None
        return CountedDocuments(
            counts_of(columns, len(self.store.vocabulary)),
            self.store.vocabulary,
            self.keys(columns["digests"], columns["copies"], columns["rows"]),
            tokens=columns["tokens"],
            token_ends=columns["token_ends"],
            sentence_ends=columns["sentence_ends"],
            labels=known["label"],
            parties=known["party"],
            dates=known["date"],
            embeddings=columns.get("embeddings"),
            persons=persons,
            people="" if persons is None else self.people,
            texts=columns["texts"],
            name=self.name,
        )


@dataclass(frozen=True, eq=False)
class StoredBlock:
    """A block of documents on disk (contracts.DocumentBlock). Pickled, it takes no document with it."""

    number: int
    shard: str
    view: StoredView
    rows: Array | range = field(repr=False)  # in the store

    def __reduce__(self) -> Any:
        if isinstance(self.rows, range) or not len(self.rows) or (np.diff(self.rows) <= 0).any():
            return StoredBlock, (self.number, self.shard, self.view, self.rows)
        first = int(self.rows[0])  # a bit for each document says which are there
        there = np.zeros(int(self.rows[-1]) - first + 1, dtype=bool)
        there[self.rows - first] = True
        return _unpacked, (self.number, self.shard, self.view, first, np.packbits(there))

    def read(self) -> CountedDocuments:
        """The documents of the block, in memory; where all are asked for as they were written, their pages are mapped."""
        return self.view.read(self.rows)

    def recall(self, kept: Memory) -> Memory:
        """What was kept: from its file, if it is in one."""
        if ON_DISK not in kept:
            return dict(kept)
        return read_arrays(self._folder / bytes(kept[ON_DISK]).decode())

    def keep(self, memory: Memory, keeping: Keeping) -> Memory:
        """Writes the memory to a file beside the shard, and returns its name. Files that nobody needs any more are deleted."""
        if not keeping.folder:
            return memory
        folder = self._folder / keeping.folder
        path = folder / f"{self.number:05d}-{keeping.version}.npz"
        save_arrays(path, memory)
        for old in (*folder.glob(f"{self.number:05d}-*.npz"), *folder.glob(f".{self.number:05d}-*.part")):
            earlier = old.name.lstrip(".") < path.name  # a later one may be of a worker that was given up
            if earlier and f"{keeping.folder}/{old.name}" not in keeping.needed:
                with suppress(OSError):  # then it is tried again with the next answer
                    old.unlink()
        return {ON_DISK: np.frombuffer(f"{keeping.folder}/{path.name}".encode(), np.uint8)}

    @property
    def _folder(self) -> Path:
        return self.view.store.folder / _MEMORY


def _by_block(home: Array, places: Array) -> list[Array]:
    """These places, those in one block together."""
    order = places[np.argsort(home[places], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(home[order])) + 1) if len(order) else []


def _unpacked(number: int, shard: str, view: StoredView, first: int, packed: Array) -> StoredBlock:
    return StoredBlock(number, shard, view, np.flatnonzero(np.unpackbits(packed)) + first)


@lru_cache(maxsize=4)
def _places(store: tuple[str, str, tuple[int, ...]], words: tuple[str, ...]) -> Array:
    return places_of(store_at(*store).vocabulary, words)
