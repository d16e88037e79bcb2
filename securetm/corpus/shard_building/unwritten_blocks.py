"""The blocks of a corpus that is being built, made one at a time of the parts that were read. It writes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from securetm.contracts import Array
from securetm.corpus.shard_building.block_pieces import BYTES_OF_RUN, BlockPieces, runs_of_documents
from securetm.corpus.shard_building.building_parts import BuildingParts
from securetm.corpus.shards.block_columns import joined_documents
from securetm.corpus.shards.shard_errors import BlockTooLarge

_BYTES_OF_TOKEN, _BYTES_OF_SENTENCE, _BYTES_OF_DOCUMENT = 12, 8, 96  # of a block in memory


class UnwrittenBlocks:
    """Blocks of so many documents; with persons, documents are in the order of each person's first one, and none is divided.

    A corpus of one block keeps the order of its source.
    """

    def __init__(self, parts: BuildingParts, place: Array, block_documents: int, *, by_person: bool) -> None:
        self._parts, self._place, self._by_person = parts, place, by_person
        documents = [size.documents for size in parts.sizes]
        if by_person:
            ends = _block_ends(parts.persons.documents, block_documents)
        else:
            ends = np.append(np.arange(block_documents, sum(documents), block_documents), sum(documents))
        self._bounds = []  # of each part: where the documents of each block begin and end
        before = 0
        for number, held in enumerate(documents):
            if by_person:
                bounds = np.searchsorted(self._places(number), np.append(0, ends))
            else:
                bounds = np.clip(np.append(0, ends) - before, 0, held)
            self._bounds.append(bounds)
            before += held
        self._blocks = len(ends)

    def __len__(self) -> int:
        return self._blocks

    def made(self, block: int) -> BlockPieces:
        """The block with its columns."""
        made = BlockPieces(self._place)
        for run in self._in_person_order(block) if self._by_person else self._runs(block):
            made.add(run)
        return made

    def _runs(self, block: int) -> Iterator[dict[str, Array]]:
        for number, first, last in self._pieces(block):
            yield from runs_of_documents(self._parts.column(number), np.arange(first, last))

    def _in_person_order(self, block: int) -> Iterator[dict[str, Array]]:
        held = joined_documents(list(self._runs(block)))
        by = held["rows"] if self._blocks == 1 else self._parts.persons.places(held["person"])
        yield from runs_of_documents(held, np.argsort(by, kind="stable"))

    def check_room(self, block: int, megabytes: int) -> None:
        """Refuses a block that takes more memory than allowed, before it is made."""
        documents = tokens = sentences = 0
        for number, first, last in self._pieces(block):
            columns, size = self._parts.column(number), self._parts.sizes[number]
            ends = columns["token_ends"]
            own = int(ends[last - 1]) - (int(ends[first - 1]) if first else 0)
            documents, tokens = documents + last - first, tokens + own
            sentences += size.sentences * own // max(size.tokens, 1)
        each = _BYTES_OF_DOCUMENT + 4 * self._parts.width
        bytes_ = documents * each + tokens * _BYTES_OF_TOKEN + sentences * _BYTES_OF_SENTENCE
        needed = (bytes_ * (2 if self._by_person else 1) + BYTES_OF_RUN) >> 20
        if needed > megabytes:
            raise BlockTooLarge(documents, needed, megabytes)

    def _pieces(self, block: int) -> list[tuple[int, int, int]]:
        """The parts that hold documents of the block, and where these begin and end there."""
        found = [(number, int(bounds[block]), int(bounds[block + 1])) for number, bounds in enumerate(self._bounds)]
        return [(number, first, last) for number, first, last in found if first < last]

    def _places(self, number: int) -> Array:
        return self._parts.persons.places(self._parts.column(number)["person"])


def _block_ends(documents_of_persons: Array, block_documents: int) -> Array:
    """The person after the last one of each block: a block ends with the person who fills it."""
    ends: list[int] = []
    whole = np.cumsum(documents_of_persons)
    before = 0
    while not ends or ends[-1] < len(whole):
        ends.append(min(int(np.searchsorted(whole, before + block_documents)) + 1, len(whole)))
        before = int(whole[ends[-1] - 1])
    return np.array(ends)
