"""Blocks of documents that are in memory (contracts.BlockedDocuments), and how any corpus is cut into blocks. It reads no file.

A block holds a fixed number of documents and ends only between two persons, so that all documents of a person are in one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from securetm.contracts import Array, Keeping, Memory
from securetm.errors import SplitOwner


@dataclass(frozen=True)
class HeldBlock:
    """A block of documents in memory (contracts.DocumentBlock). Pickled, it takes its own documents with it and no others."""

    number: int
    documents: Any
    rows: Array | None = None  # which of these documents are in the block; None: all
    shard: str = ""

    def __reduce__(self) -> Any:
        return HeldBlock, (self.number, self.read(), None, self.shard)

    def read(self) -> Any:
        """The documents of the block."""
        return self.documents if self.rows is None else self.documents.select(self.rows)

    def recall(self, kept: Memory) -> Memory:
        """The same."""
        return dict(kept)

    def keep(self, memory: Memory, keeping: Keeping) -> Memory:  # noqa: ARG002 - it has no shard beside which it could be
        """The same: what a party remembers of documents in memory is in memory."""
        return memory


class HeldInBlocks:
    """Documents in memory. They are one block, unless `block_numbers` gives the block of each."""

    block_numbers: Array | None = None

    def blocks(self) -> Sequence[HeldBlock]:
        """The blocks that have a document, by number; of no documents, one empty block."""
        numbers = self.block_numbers
        if numbers is None or not len(numbers):
            return [HeldBlock(0, self)]
        order = np.argsort(numbers, kind="stable")
        heads = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        return [HeldBlock(int(numbers[rows[0]]), self, rows) for rows in np.split(order, heads[1:])]

    def gathered(self) -> Self:
        """These documents: they are in memory."""
        return self


def by_person(persons: Array) -> Array:
    """The order in which a corpus is cut into blocks: by each person's first document, and each person's as they were."""
    _, first, member = np.unique(persons, return_index=True, return_inverse=True)
    return np.argsort(first[member], kind="stable")


def numbered(documents: int, size: int, persons: Array | None = None) -> Array:
    """The block of each of so many documents, which are in the order `by_person` gives.

    A block ends with the first person that fills it, so it holds `size` documents or the rest of one person's more.
    """
    places = np.arange(documents)
    if persons is None or not documents:
        return places // size
    ends = np.append(np.flatnonzero(np.diff(persons)) + 1, documents)  # where each person's documents end
    last = [0]
    while last[-1] < documents:
        last.append(int(ends[np.searchsorted(ends, min(last[-1] + size, documents))]))
    return np.repeat(np.arange(len(last) - 1), np.diff(last))


def check_whole(persons: Array, numbers: Array) -> None:
    """Refuses persons whose documents are in two blocks: two sums would bound them apart."""
    if not len(persons):
        return
    _, member = np.unique(persons, return_inverse=True)
    home = np.zeros(int(member.max()) + 1, dtype=np.int64)
    home[member] = numbers
    if not np.array_equal(home[member], numbers):
        raise SplitOwner()
