"""Sums of blocks of documents, joined in a fixed order: the same bytes whoever adds them and in whatever order they arrive.

Floating-point sums depend on their order, so the order is a binary tree over the blocks' places: a node of one level is the sum
of two neighbours of the level below, and a node without a right neighbour is carried up. It knows no document and no noise.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array
from securetm.data_classes import dataclass, replace
from securetm.errors import UnfitBlocks


@dataclass(frozen=True)
class RowFailure:
    """How a row failed: the name of the exception, its sentence, and where. It stays with the party."""

    name: str
    reason: str
    where: str


@dataclass(frozen=True)
class PartialSum:
    """The sum of the rows of some documents, not yet made finite, and what the party notes of them for itself."""

    vector: Array
    loss: float = 0.0  # the mean loss of `losses` rows
    losses: int = 0
    lost: int = 0  # rows that failed or were not finite, and so counted as zero
    failed: int = 0  # documents of rows that failed
    failures: tuple[RowFailure, ...] = ()  # how they failed, each name once

    def plus(self, later: PartialSum) -> PartialSum:
        """The sum of both. It takes over the memory of this one, which is then of no more use."""
        into = self.vector if self.vector.flags.writeable else None
        with np.errstate(all="ignore"):  # an overflow counts as zero, and a warning would reveal such documents
            vector = np.add(self.vector, later.vector, out=into)
        count = self.losses + later.losses
        both = [part.loss * part.losses for part in (self, later) if part.losses]
        loss = sum(both) / count if count else 0.0
        failures = tuple({one.name: one for one in (*later.failures, *self.failures)}.values())
        return PartialSum(vector, loss, count, self.lost + later.lost, self.failed + later.failed, failures)

    def finite(self) -> PartialSum:
        """The same sum with zero in each coordinate that overflowed, which counts as lost."""
        if self.vector.dtype.kind != "f" or (finite := np.isfinite(self.vector)).all():
            return self
        vector = np.where(finite, self.vector, self.vector.dtype.type(0))
        return replace(self, vector=vector, lost=self.lost + int((~finite).sum()))


@dataclass(frozen=True)
class Node:
    """The sum of a whole subtree: of the blocks at the places from `index` x 2^`level` on, 2^`level` of them."""

    level: int
    index: int
    part: PartialSum


class JoinedBlocks:
    """Adds sums as they arrive, in the order of the tree. A worker adds up what it has, and sends the nodes that are left.

    A run of neighbouring blocks leaves at most two nodes a level, so memory grows with the logarithm of their number.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks  # of the whole answer, wherever they are
        self._height = (blocks - 1).bit_length()
        self._waiting: dict[tuple[int, int], PartialSum] = {}

    def add(self, node: Node) -> None:
        """Adds the sum of one block (level 0) or of a subtree. Refuses one that is in the sum already, or in no such tree."""
        level, index, part = node.level, node.index, node.part
        self._check_new(level, index)
        while level < self._height:
            if (index | 1) << level < self.blocks:  # it has a right neighbour, or is one
                other = self._waiting.pop((level, index ^ 1), None)
                if other is None:
                    break
                part = other.plus(part) if index & 1 else part.plus(other)
            level, index = level + 1, index >> 1
        self._waiting[level, index] = part

    def nodes(self) -> tuple[Node, ...]:
        """The sums that wait for their neighbours, in the order of their blocks."""
        found = sorted(self._waiting.items(), key=lambda item: item[0][1] << item[0][0])
        return tuple(Node(level, index, part) for (level, index), part in found)

    def whole(self) -> PartialSum:
        """The sum of all blocks, or a refusal if one is missing."""
        if set(self._waiting) != {(self._height, 0)}:
            raise UnfitBlocks(self.blocks, "some of them are missing")
        return self._waiting[self._height, 0]

    def _check_new(self, level: int, index: int) -> None:
        if not (0 <= level <= self._height and 0 <= index << level < self.blocks):
            raise UnfitBlocks(self.blocks, f"there is no node {index} on level {level}")
        above = ((up, index >> (up - level)) for up in range(level, self._height + 1))
        if any(place in self._waiting for place in above):
            raise UnfitBlocks(self.blocks, f"node {index} on level {level} was added before")
