"""The blocks of a corpus that is being built, made one at a time of the parts that were read. It writes nothing."""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array
from securetm.corpus.counted_documents import counted_tokens
from securetm.corpus.shard_building.building_parts import BuildingParts
from securetm.corpus.shards.block_columns import chosen_documents, joined_documents
from securetm.corpus.shards.shard_errors import BlockTooLarge

BYTES_OF_TOKEN = 48  # in memory while a block is made
_BYTES_OF_DOCUMENT = 300


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

    def columns(self, block: int) -> dict[str, Array]:
        """The columns of a block, with words by their place in the alphabet, and their counts."""
        pieces = []
        for number, first, last in self._pieces(block):
            pieces.append(chosen_documents(self._parts.column(number), np.arange(first, last)))
        columns = joined_documents(pieces)
        if self._by_person:
            by = columns["rows"] if self._blocks == 1 else self._parts.persons.places(columns["person"])
            columns = chosen_documents(columns, np.argsort(by, kind="stable"))
        tokens = self._place[columns["tokens"]]
        counts = counted_tokens(tokens, columns["token_ends"], len(self._place))
        return {**columns, "tokens": tokens, "starts": counts.indptr, "words": counts.indices, "times": counts.data}

    def check_room(self, block: int, megabytes: int) -> None:
        """Refuses a block that takes more memory than allowed, before it is made."""
        documents = tokens = 0
        for number, first, last in self._pieces(block):
            ends = self._parts.column(number)["token_ends"]
            documents += last - first
            tokens += int(ends[last - 1]) - (int(ends[first - 1]) if first else 0)
        each = _BYTES_OF_DOCUMENT + 12 * self._parts.width
        needed = (documents * each + tokens * BYTES_OF_TOKEN) >> 20
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
