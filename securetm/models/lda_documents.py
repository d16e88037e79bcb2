"""What LDA holds of a party's documents: their words in one fixed order, and the topic of every token, remembered by document.

It stays with whoever holds the documents; nothing here is sent, and no topic is drawn here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array, Memory
from securetm.errors import BrokenPromise, CountsNotWhole
from securetm.models.lda_kernels import name_documents

MOST_TOPICS = 1 << 16  # a token's topic is kept in two bytes
NEVER = -2  # the step of a document that no state can have counted
_MINE = "lda/"  # in the party's memory, beside what others keep there


@dataclass(frozen=True)
class Bags:
    """Documents as lists of words and counts, in the order of the vocabulary; a document's tokens stand in the same order."""

    ends: Array  # where each document begins in `words`, and where the last one ends
    words: Array
    counts: Array
    token_ends: Array  # the same for its tokens

    @classmethod
    def of(cls, matrix: Any, vocabulary: int) -> Self:
        """The bags in a matrix of whole counts over that many words."""
        table = sparse.csr_array(matrix)
        if table.shape[1] != vocabulary:
            raise BrokenPromise("document", table.shape[1], vocabulary)
        if not table.has_canonical_format or (table.nnz and table.data.min() <= 0):
            table = table.copy()  # the corpus stays as it is
            table.sum_duplicates()
            table.eliminate_zeros()
        whole = table.data.astype(np.int64)
        if table.nnz and (whole.min() < 0 or (whole != table.data).any()):
            raise CountsNotWhole()
        ends = table.indptr.astype(np.int64)
        tokens = np.concatenate([np.zeros(1, np.int64), np.cumsum(whole)])[ends]
        return cls(ends, table.indices.astype(np.int64), whole, tokens)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def names(self, keys: Array) -> Array:
        """What each document's topics are remembered under."""
        return name_documents(self.ends, self.words, self.counts, np.ascontiguousarray(keys, dtype=np.uint64))

    def ranges(self, parts: int) -> Iterator[tuple[int, int]]:
        """The documents in that many ranges of about as many tokens."""
        aims = np.linspace(0, self.token_ends[-1], parts + 1)[1:-1]
        borders = [0, *np.searchsorted(self.token_ends[1:-1], aims).tolist(), len(self)]
        return ((first, last) for first, last in pairwise(borders) if first < last)

    def chunks(self, owners: Array | None, most: int) -> Iterator[Array]:
        """Documents a chunk of about `most` tokens at a time; an owner's documents are all in one, and comes back in none."""
        lengths = np.diff(self.token_ends)
        order = np.arange(len(self)) if owners is None or lengths.sum() <= most else np.argsort(owners, kind="stable")
        filled = np.cumsum(lengths[order]) // most
        if owners is not None and len(order):
            heads = np.flatnonzero(np.diff(owners[order], prepend=owners[order[0]] - 1))
            filled = np.repeat(filled[heads], np.diff(heads, append=len(order)))
        yield from np.split(order, np.flatnonzero(np.diff(filled)) + 1) if len(order) else ()


@dataclass(frozen=True)
class Assignments:
    """The topic of every token of some documents, and at which step each document's counts were last given."""

    names: Array
    steps: Array
    token_ends: Array
    topics: Array

    @classmethod
    def remembered(cls, memory: Memory) -> Self:
        """What the party's memory holds; at first nothing."""
        if _MINE + "names" not in memory:
            return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.uint16))
        return cls(*(memory[_MINE + part] for part in ("names", "steps", "token_ends", "topics")))

    def recall(self, bags: Bags, names: Array) -> Assignments:
        """These documents' topics, in their order; of a document never met the step is `NEVER` and topics are zeros."""
        topics = np.zeros(int(bags.token_ends[-1]), dtype=np.uint16)
        steps = np.full(len(bags), NEVER, dtype=np.int64)
        if len(self.names) and len(names):
            order = np.argsort(self.names, kind="stable")
            place = order[np.minimum(np.searchsorted(self.names[order], names), len(order) - 1)]
            met = np.flatnonzero(self.names[place] == names)
            steps[met] = self.steps[place[met]]
            topics[_places(bags.token_ends, met)] = self.topics[_places(self.token_ends, place[met])]
        return Assignments(names, steps, bags.token_ends, topics)

    def keep(self, memory: Memory, fresh: Assignments) -> None:
        """Into the party's memory: the fresh topics, beside those of documents that were not asked this time."""
        others = np.flatnonzero(~np.isin(self.names, fresh.names))
        lengths = np.concatenate([np.diff(fresh.token_ends), np.diff(self.token_ends)[others]])
        memory[_MINE + "names"] = np.concatenate([fresh.names, self.names[others]])
        memory[_MINE + "steps"] = np.concatenate([fresh.steps, self.steps[others]])
        memory[_MINE + "token_ends"] = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        memory[_MINE + "topics"] = np.concatenate([fresh.topics, self.topics[_places(self.token_ends, others)]])


def _places(ends: Array, documents: Array) -> Array:
    """Where the tokens of these documents stand, one after the other."""
    lengths = np.diff(ends)[documents]
    shift = np.repeat(ends[documents] - np.cumsum(lengths) + lengths, lengths)
    return shift + np.arange(len(shift))
