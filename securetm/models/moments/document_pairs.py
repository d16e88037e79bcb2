"""One row for each document: which two words it holds together, and which words. It adds no noise and estimates nothing.

A document with n distinct words has the number `sqrt(2 (1 - s) / (n (n - 1)))` for each two of its words, and `sqrt(s / n)` for
each word, where s is the setting `alone`. With one word it has the number 1 for it. Its squared length is then

    n (n - 1) / 2 * 2 (1 - s) / (n (n - 1)) + n * s / n = (1 - s) + s = 1,

however long it is, and 0 where it has no word. It is the upper half of u u^T, where u is 1 / sqrt(n) for each of its words,
with numbers off the diagonal times sqrt(2); the diagonal would say nothing more than u, so it holds the words themselves.
Numbers are rounded down to a public grid of a power of two. So a row is no longer than 1, and sums of rows are exact in 64 bits
in any order: parties and one machine reach the same sum, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from securetm.contracts import Array
from securetm.models.gibbs.lda_documents import LdaDocuments
from securetm.models.moments.moments_kernels import lengths_of, summed

LONGEST = 1.0  # of a row
_ROOM = 1.0 - 2.0**-30  # for the rounding of lengths, so that no row is clipped
_FINEST = 8  # steps of the grid in 1 / V: a party's own rounding to a grid for its secure sum stays below half a step


def size_of(words: int) -> int:
    """The numbers of a row over so many words."""
    return words * (words + 1) // 2


def grid_of(words: int) -> float:
    """The step of the grid of a row over so many words: a power of two, at most 1 / (8 V)."""
    return float(2.0 ** -np.ceil(np.log2(_FINEST * max(words, 2))))


def weights_of(counts: Array, alone: float, words: int) -> tuple[Array, Array]:
    """The number of each word, and of each two words, in documents with so many distinct words."""
    n, grid = counts.astype(np.float64), grid_of(words)
    single = np.where(n > 1, np.sqrt(alone / np.maximum(n, 1.0)), 1.0)
    pair = np.sqrt(2.0 * (1.0 - alone) / np.maximum(n * (n - 1.0), 1.0))
    return tuple(np.floor(_ROOM * each / grid) * grid for each in (single, pair))  # type: ignore[return-value]


@dataclass(frozen=True)
class DocumentPairs:
    """The rows of documents as gradients of losses (contracts.Losses): no row is materialised."""

    held: LdaDocuments
    single: Array  # of each document, the number of each of its words
    pair: Array  # of each document, the number of each two of its words
    words: int  # in the vocabulary

    @classmethod
    def of(cls, held: LdaDocuments, alone: float, words: int) -> Self:
        """The rows of these documents."""
        return cls(held, *weights_of(np.diff(held.bags.ends), alone, words), words)

    @property
    def values(self) -> Array:
        """Nothing is fitted to a document, so each loss is 0."""
        return np.zeros(len(self.held))

    def norms(self, owners: Array) -> Array:
        """The l2 norm of each owner's rows, summed over all its documents."""
        order = np.argsort(owners, kind="stable")
        heads = np.append(np.flatnonzero(np.diff(owners[order], prepend=owners[order[:1]] - 1)), len(order))
        return lengths_of(order, heads, self.held.bags, self.single, self.pair, self.words)

    def gradient(self, weights: Array) -> Array:
        """The weighted sum of the documents' rows, flat."""
        return summed(self.held.bags, self.single, self.pair, weights.astype(np.float64), self.words)
