"""What was read of a source so far, in files: documents with words by their number of first appearance. It reads no source.

A part is a run of documents, and beside it lies what it added to the words and names. All parts in order give back the builder
as it was, so a build that was killed goes on after the last whole part. Within a part, documents lie in the order of their
persons' first documents, so that those of a block are one run of each part.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.building import CorpusBuilder, TakenDocuments
from securetm.corpus.counted_documents import merge_ends
from securetm.corpus.document_names import copy_numbers
from securetm.corpus.shards.block_columns import chosen_documents, size_of_block
from securetm.corpus.shards.block_layout import NAMES, BlockLayout, BlockSize, digest_of
from securetm.corpus.shards.manifest import write_whole
from securetm.private_files import sync, writing

_BYTES_OF_NAME = 96  # in memory while it is compared


@dataclass
class Persons:
    """The order of persons by their first document, and how many documents each has."""

    _places: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by the person's number; -1: not met
    documents: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # by place

    def placed(self, numbers: Array) -> Array:
        """The places of these documents' persons, who are counted."""
        more = int(numbers.max(initial=-1)) + 1 - len(self._places)
        self._places = np.concatenate([self._places, np.full(max(more, 0), -1)])
        met, first = np.unique(numbers, return_index=True)
        met = met[np.argsort(first)]
        new = met[self._places[met] < 0]
        self._places[new] = np.arange(len(self.documents), len(self.documents) + len(new))
        self.documents = np.concatenate([self.documents, np.zeros(len(new), dtype=np.int64)])
        places = self.places(numbers)
        self.documents += np.bincount(places, minlength=len(self.documents))
        return places

    def places(self, numbers: Array) -> Array:
        """The places of persons that were met before."""
        return np.asarray(self._places[numbers])


@dataclass
class BuildingParts:
    """The folder of a build's parts."""

    folder: Path
    persons: Persons = field(default_factory=Persons)
    dropped: Counter[tuple[str, ...]] = field(default_factory=Counter)
    sizes: list[BlockSize] = field(default_factory=list)
    width: int = 0  # of an embedding

    def add(self, taken: TakenDocuments, builder: CorpusBuilder) -> None:
        """Writes a part, and then what it added to the words and names."""
        if len(taken):
            self.width = 0 if taken.embeddings is None else taken.embeddings.shape[1]
        columns = self._in_order(_columns_of(taken), by_person=builder.persons_known)
        size = size_of_block(columns)
        with writing(self._part(len(self.sizes))) as stream:
            digest = self._layout.write(stream, columns)
        sync(self._part(len(self.sizes)))
        facts = {**asdict(size), "digest": digest, "width": self.width, "read": builder.documents}
        facts |= {"given_width": builder.width, "persons": builder.persons_known, "ids": builder.ids_known}
        facts |= {"words": list(builder.lexicon.words)[self._words :], "names": self._new_names(builder)}
        write_whole(self._facts(len(self.sizes)), {**facts, "dropped": [[*why, n] for why, n in sorted(taken.dropped.items())]})
        self._note(size, taken.dropped, builder)

    def resume(self, builder: CorpusBuilder) -> None:
        """Gives the builder what all whole parts hold, and forgets the first part that is not whole and those after it."""
        while (facts := self._whole(len(self.sizes))) is not None:
            for word in facts["words"]:
                builder.lexicon.words[word] = len(builder.lexicon.words)
            for name, entries in facts["names"].items():
                known = builder.columns[name].known
                known.update({entry: number for number, entry in enumerate(entries, len(known))})
            builder.resume(int(facts["read"]), facts["given_width"], bool(facts["persons"]), bool(facts["ids"]))
            self.width = int(facts["width"])
            dropped = Counter({tuple(why): int(n) for *why, n in facts["dropped"]})
            size = _size_in(facts)
            if builder.persons_known:
                columns = self._mapped(len(self.sizes), size)
                self.persons.placed(columns["person"][np.argsort(columns["rows"])])  # in the order of the source
            self._note(size, dropped, builder)

    def column(self, number: int) -> dict[str, Array]:
        """The columns of one part."""
        columns = self._mapped(number, self.sizes[number])
        for places, numbers in self._copies.get(number, ()):
            columns["copies"][places] = numbers  # in memory: the file stays as it is
        return columns

    def number_copies(self, bytes_at_once: int) -> int:
        """Numbers the documents that are called alike, in the order of the source. Returns how many are not the first such one.

        Names are compared a share of them at a time, so that as many as fit are in memory.
        """
        documents = sum(size.documents for size in self.sizes)
        passes = 1 + documents * _BYTES_OF_NAME // bytes_at_once
        return sum(self._number_share(share, passes) for share in range(passes))

    def _number_share(self, share: int, passes: int) -> int:
        """Those whose names have this remainder."""
        where, rows, digests = [], [], []
        for number, size in enumerate(self.sizes):
            columns = self._mapped(number, size)
            mine = np.flatnonzero(np.ascontiguousarray(columns["digests"]).view("<u8")[:, 0] % np.uint64(passes) == share)
            where.append(np.column_stack([np.full(len(mine), number), mine]))
            rows.append(columns["rows"][mine])
            digests.append(columns["digests"][mine])
        if not where:
            return 0
        in_source_order = np.argsort(np.concatenate(rows))
        found = copy_numbers(np.concatenate(digests)[in_source_order])
        later = np.flatnonzero(found)
        parts = np.concatenate(where)[in_source_order[later]]
        for number in np.unique(parts[:, 0]):
            own = parts[:, 0] == number
            self._copies.setdefault(int(number), []).append((parts[own, 1], found[later[own]]))
        return len(later)

    # ---- files -------------------------------------------------------------------------------------------------------

    _copies: dict[int, list[tuple[Array, Array]]] = field(default_factory=dict)  # by part: later copies, and their numbers
    _words: int = 0
    _names: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 1))

    def _note(self, size: BlockSize, dropped: Counter[tuple[str, ...]], builder: CorpusBuilder) -> None:
        self.sizes.append(size)
        self.dropped += dropped
        self._words = len(builder.lexicon.words)
        self._names = {name: len(builder.columns[name].known) for name in NAMES}

    def _new_names(self, builder: CorpusBuilder) -> dict[str, list[str]]:
        return {name: list(builder.columns[name].known)[self._names[name] :] for name in NAMES}

    def _in_order(self, columns: dict[str, Array], *, by_person: bool) -> dict[str, Array]:
        if not by_person or not len(columns["rows"]):
            return columns
        return chosen_documents(columns, np.argsort(self.persons.placed(columns["person"]), kind="stable"))

    @property
    def _layout(self) -> BlockLayout:
        return BlockLayout.of(NAMES, self.width, counted=False)

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:05d}.part"

    def _facts(self, number: int) -> Path:
        return self.folder / f"{number:05d}.json"

    def _mapped(self, number: int, size: BlockSize) -> dict[str, Array]:
        return self._layout.mapped(self._part(number), 0, size)[0]

    def _whole(self, number: int) -> dict[str, Any] | None:
        """The facts of a part, if it was written whole and is as it was."""
        try:
            facts = json.loads(self._facts(number).read_bytes())
            part = self._part(number).read_bytes()
        except (OSError, ValueError):
            return None
        return facts if digest_of(part) == facts["digest"] else None


def _columns_of(taken: TakenDocuments) -> dict[str, Array]:
    found = {"rows": taken.rows, "texts": taken.texts, "digests": taken.digests, **taken.names, "tokens": taken.tokens}
    found |= {"copies": np.zeros(len(taken), np.int32), "token_ends": taken.token_ends}  # numbered when all are read
    found["sentence_ends"] = merge_ends(taken.sentence_ends, taken.token_ends)
    return found if taken.embeddings is None else {**found, "embeddings": taken.embeddings}


def _size_in(facts: dict[str, Any]) -> BlockSize:
    return BlockSize(facts["documents"], facts["tokens"], facts["sentences"])
