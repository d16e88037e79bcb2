"""A corpus on disk as a party uses it: chosen, projected and split without reading it, and read one block at a time.

It gives the same documents as the corpus in memory that was read from the same source. What it keeps in memory is a number for
each chosen document; a figure of every document is computed as a stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from securetm.contracts import BLOCK_DOCUMENTS, Array
from securetm.corpus.corpus_errors import DamagedFile
from securetm.corpus.counted_documents import by_key, in_train, least_keys, row_numbers, unrepeated
from securetm.corpus.dropped import Dropped
from securetm.corpus.held_blocks import by_person, numbered
from securetm.corpus.shards.corpus_store import CorpusStore, store_at
from securetm.corpus.shards.manifest import Manifest
from securetm.corpus.shards.shard_errors import DamagedShard, WholeCorpusNeeded
from securetm.corpus.shards.stored_block import Projection, StoredBlock, StoredView
from securetm.corpus.stored import save_arrays

CHOICE = "choice"  # in a file that names documents of a corpus on disk and holds none


@dataclass(frozen=True, eq=False)
class ShardedCorpus:
    """Documents of a corpus on disk, all or some of them (contracts.BlockedDocuments)."""

    view: StoredView
    rows: Array | None = field(default=None, repr=False)  # in the store, in the order of the corpus; None: all
    block_numbers: Array | None = field(default=None, repr=False)  # of each document; None: those that are stored
    is_one_block: bool = False  # whether these documents are all in one block, wherever they are stored
    dropped: tuple[Dropped, ...] = ()
    skipped: int = 0
    perturbed: ClassVar[None] = None

    @classmethod
    def open(cls, folder: Path, name: str | None = None, secret: bytes = b"") -> Self:
        """Opens a folder that `securetm corpus build` wrote. The name and the secret make the documents' keys."""
        manifest = Manifest.read_from(folder)
        store = store_at(str(folder.resolve()), manifest.digest, manifest.shards)
        skipped = manifest.read - manifest.documents
        named = name or manifest.name
        return cls(StoredView(store, named, named, secret=secret), dropped=manifest.dropped, skipped=skipped)

    @classmethod
    def chosen_in(cls, arrays: Mapping[str, Array], path: Path) -> Self:
        """The documents that a file names, which `save` wrote."""
        try:
            facts = json.loads(arrays[CHOICE].tobytes())
            folder, digest = Path(facts["folder"]), str(facts["digest"])
            view = {name: facts[name] for name in ("source", "name", "party", "by_place")}
            view["secret"] = bytes.fromhex(facts["secret"])
            one_block, skipped = bool(facts["one_block"]), int(facts["skipped"])
        except (ValueError, TypeError, KeyError) as fault:
            raise DamagedFile(str(path), "it does not name documents of a corpus on disk") from fault
        opened = cls.open(folder)
        if opened.view.store.manifest.digest != digest:
            raise DamagedShard(str(folder), "another corpus was built there meanwhile")
        chosen = replace(opened, rows=arrays.get("rows"), is_one_block=one_block, skipped=skipped, dropped=())
        return replace(chosen, view=replace(opened.view, **view))

    # ---- what is known without reading documents ---------------------------------------------------------------------

    def __len__(self) -> int:
        return self._store.manifest.documents if self.rows is None else len(self.rows)

    def __repr__(self) -> str:
        return f"<Corpus {self.name!r} on disk: {len(self)} documents, {len(self.vocabulary)} words>"

    @property
    def _store(self) -> CorpusStore:
        return self.view.store

    @property
    def name(self) -> str:
        """What the corpus is called."""
        return self.view.name

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words."""
        return self.view.vocabulary

    @property
    def has_persons(self) -> bool:
        """Whether it is known whose each document is."""
        return self.view.persons and "person" in self._store.manifest.names

    @property
    def people(self) -> str:
        """The numbering of persons; nothing where it is not known whose documents these are."""
        return self.view.people if self.has_persons else ""

    @property
    def has_sentences(self) -> bool:
        """Whether it is known where sentences end."""
        return True

    @property
    def embedding_width(self) -> int:
        """Numbers in the embedding of a document; 0: there are no embeddings."""
        return self._store.manifest.width

    # ---- what only documents in memory have: all of them are read, or refused -----------------------------------------

    @property
    def counts(self) -> Any:
        """The counts of all documents."""
        return self.gathered().counts

    @property
    def tokens(self) -> Array | None:
        """The words of all documents in reading order."""
        return self._whole("tokens")

    @property
    def token_ends(self) -> Array | None:
        """Where each document ends in `tokens`."""
        return self._whole("token_ends")

    @property
    def sentence_ends(self) -> Array | None:
        """Where each sentence ends in `tokens`."""
        return self._whole("sentence_ends")

    @property
    def embeddings(self) -> Array | None:
        """The embedding of each document."""
        return self._whole("embeddings")

    def _whole(self, column: str) -> Array | None:
        found: Array | None = getattr(self.gathered(), column)
        return found

    # ---- figures of all documents, as a stream -----------------------------------------------------------------------

    @cached_property
    def keys(self) -> Array:
        """The key of each document."""
        return self.view.keys(self._column("digests"), self._column("copies"), self._column("rows"))

    @cached_property
    def persons(self) -> Array | None:
        """Whose each document is, if it is known."""
        return self._column("person").astype(np.int64) - 1 if self.has_persons else None

    @property
    def texts(self) -> Array:
        """The digest of each document's text."""
        return self._column("texts")

    @property
    def labels(self) -> Array | None:
        """The label of each document."""
        return self._names("label")

    @property
    def parties(self) -> Array | None:
        """The party of each document."""
        if self.view.party is not None:
            return np.full(len(self), self.view.party)
        return self._names("party")

    @property
    def dates(self) -> Array | None:
        """The date of each document."""
        return self._names("date")

    def lengths(self) -> Array:
        """Words in each document."""
        found = np.zeros(len(self), dtype=np.int64)
        for places, documents in self.parts():
            found[places] = documents.lengths()
        return found

    def document_frequencies(self) -> Array:
        """The number of documents in which each word occurs."""
        found = np.zeros(len(self.vocabulary), dtype=np.int64)
        for _, documents in self.parts():
            found += documents.document_frequencies()
        return found

    def parts(self) -> Iterator[tuple[Array, Any]]:
        """All documents, a part in memory at a time, and the place of each in the corpus."""
        for places, rows in self._by_stored_block():
            yield places, self.view.read(rows)

    def _column(self, name: str) -> Array:
        found: Array | None = None
        for places, rows in self._by_stored_block():
            block = self._store.block_of(int(rows[0]))
            column = self._store.columns(block)[name][np.asarray(rows) - self._store.starts[block]]
            if found is None:
                found = np.empty((len(self), *column.shape[1:]), dtype=column.dtype)
            found[places] = column
        return self._store.columns(0)[name][:0] if found is None else found

    def _names(self, role: str) -> Array | None:
        known = self._store.names.get(role)
        return None if known is None else known[self._column(role)]

    def _by_stored_block(self) -> Iterator[tuple[Array, Array | range]]:
        """The documents of each stored block: their places here, and their numbers in the store."""
        starts = self._store.starts
        if self.rows is None:
            for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                yield np.arange(first, last), range(first, last)
            return
        home = np.searchsorted(starts, self.rows, side="right") - 1
        for places in _runs(home):
            yield places, self.rows[places]

    # ---- other corpora made of this one ------------------------------------------------------------------------------

    def select(self, rows: Array) -> Self:
        """The documents with these row numbers, in that order; or those where a Boolean mask is true. None is read."""
        wanted = row_numbers(rows, len(self))
        numbers = None if self.block_numbers is None else self.block_numbers[wanted]
        return replace(self, rows=wanted if self.rows is None else self.rows[wanted], block_numbers=numbers)

    def project(self, vocabulary: Sequence[str]) -> Self:
        """The same documents over another vocabulary. None is read."""
        words = unrepeated(vocabulary)
        if words == self.vocabulary:
            return self
        if not set(words) <= set(self.vocabulary) and self.view.projection is not None:
            raise WholeCorpusNeeded("a second list of words with words that the first one left out", str(self._store.folder))
        return replace(self, view=replace(self.view, projection=Projection(self._store, words)))

    def split(self, fraction: float = 0.75, seed: int = 0) -> tuple[Self, Self]:
        """(train, held out), by the documents' keys."""
        train = in_train(least_keys(self.keys, self.persons), fraction, seed)
        return self.select(np.flatnonzero(train)), self.select(np.flatnonzero(~train))

    def without_persons(self) -> Self:
        """The same documents, each as if it were of a person of its own."""
        return replace(self, view=replace(self.view, persons=False))

    def in_source_order(self) -> Self:
        """The documents in the order in which they were read, which persons change where there are several blocks."""
        if not self.has_persons or len(self._store.manifest.blocks) == 1:
            return self
        return self.select(np.argsort(self._column("rows"), kind="stable"))

    def named_by_place(self) -> Self:
        """The same documents under keys of their numbers in the source, as documents in memory have them."""
        return replace(self, view=replace(self.view, by_place=True))

    def of_party(self, rows: Array, name: str) -> Self:
        """The documents of one party of a simulation: a corpus of its own, which is not yet in blocks."""
        held = self.select(rows)
        return replace(held, view=replace(self.view, name=name, party=name), is_one_block=True, dropped=(), skipped=0)

    def save(self, path: str | Path) -> None:
        """Writes which documents of the corpus on disk these are; the documents stay where they are."""
        view = self.view
        facts: dict[str, Any] = {"folder": str(view.store.folder), "digest": view.store.manifest.digest, "source": view.source}
        facts |= {"secret": view.secret.hex(), "by_place": view.by_place}
        facts |= {"name": view.name, "party": view.party, "one_block": self.is_one_block, "skipped": self.skipped}
        arrays = {CHOICE: np.frombuffer(json.dumps(facts).encode(), np.uint8)}
        save_arrays(Path(path), arrays if self.rows is None else {**arrays, "rows": self.rows})

    # ---- blocks ------------------------------------------------------------------------------------------------------

    def in_blocks(self) -> Self:
        """A party's whole corpus in blocks, each person's documents in one. One that was read whole is stored so.

        Documents that are in one block are in the order of their keys, as in memory.
        """
        alone = self.is_one_block or len(self._store.manifest.blocks) == 1
        if alone and self.block_numbers is None and len(self) <= self._store.manifest.block_documents:
            return self.select(by_key(self.keys, self.persons))
        if not self.is_one_block or len(self) <= self._store.manifest.block_documents:
            return self
        ordered = self if self.persons is None else self.select(by_person(self.persons))
        numbers = numbered(len(self), self._store.manifest.block_documents, ordered.persons)
        return replace(ordered, block_numbers=numbers, is_one_block=False)

    def blocks(self) -> Sequence[StoredBlock]:
        """The blocks that have a document, by number; of no documents, one empty block."""
        if self.is_one_block or not len(self):
            return [self._block(0, self._rows())]
        if self.block_numbers is not None:
            assert self.rows is not None
            return [self._block(int(self.block_numbers[places[0]]), self.rows[places]) for places in _runs(self.block_numbers)]
        return [self._block(self._store.block_of(int(rows[0])), rows) for _, rows in self._by_stored_block()]

    def gathered(self) -> Any:
        """All documents in memory, in their order. Refused where they are more than a block."""
        if len(self) > max(BLOCK_DOCUMENTS, self._store.manifest.block_documents) and self._store.starts.size > 2:
            raise WholeCorpusNeeded("this question", str(self._store.folder))
        return self.view.read(self._rows())

    def halves(self, seed: int = 0) -> tuple[Any, Any]:
        """(seen, unseen) in memory, where the documents are no more than a block."""
        return self.gathered().halves(seed)  # type: ignore[no-any-return]

    def _rows(self) -> Array | range:
        return range(self._store.manifest.documents) if self.rows is None else self.rows

    def _block(self, number: int, rows: Array | range) -> StoredBlock:
        where = self._store.block_of(int(rows[0])) if len(rows) else 0
        return StoredBlock(number, self._store.shard(where), self.view, rows)


def _runs(numbers: Array) -> list[Array]:
    """The places of each number, the numbers in rising order."""
    if not len(numbers):
        return []
    if (np.diff(numbers) >= 0).all():
        return np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(numbers)) + 1)
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
