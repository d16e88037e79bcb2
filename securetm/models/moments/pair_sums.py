"""The opened sum of `moments`: what is known of each two words, and how surely. It fits no topics and adds no noise.

Each number of the sum varies for two reasons: noise of a known deviation, and the chance by which documents hold two words.
The variance of the second is near the mean of the sum times the number that one document adds. A factor for each word makes
all numbers vary by 1 at most, so that least squares weigh them rightly, and eigenvalues beyond `2 sqrt(V)` are no chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from securetm.contracts import Array
from securetm.models.likely_counts import likely_totals
from securetm.models.moments.document_pairs import grid_of

_LEAST = 0.02  # of a word's frequency, in shares of all words alike


@dataclass(frozen=True, eq=False)
class PairSums:
    """The sums over all documents."""

    pairs: Array  # words x words, symmetric, zeros on the diagonal
    alone: Array  # of each word
    deviation: float  # of the noise in each number
    share: float  # of a document's squared row for single words

    @classmethod
    def of(cls, row: Array, words: int, deviation: float, share: float) -> Self:
        """The sums in an opened row. Without noise they are whole steps of the grid, whatever rounding a secure sum added."""
        if deviation == 0:
            row = np.rint(row / grid_of(words)) * grid_of(words)
        half = np.zeros((words, words))
        half[np.triu_indices(words)] = row
        alone = half.diagonal().copy()
        np.fill_diagonal(half, 0.0)
        return cls(half + half.T, alone, deviation, share)

    @cached_property
    def frequencies(self) -> Array:
        """Each word's share of all words, above 0: from pairs and from single words, each as surely as it is known."""
        words, pairs = len(self.alone), self.pairs.sum(axis=1)
        whole, single = max(float(pairs.sum()), 1e-9), max(float(self.alone.sum()), 1e-9)
        if self.deviation == 0:
            found = pairs / whole if pairs.any() else self.alone / single
        else:
            surely = np.array([single**2, whole**2 / words]) / self.deviation**2  # the inverse variances of both estimates
            both = np.array([self.alone / single, pairs / whole])
            found = likely_totals(((surely / surely.sum())[:, None] * both).sum(axis=0), float(surely.sum() ** -0.5))
        kept = np.maximum(found, _LEAST / words)
        shares: Array = kept / kept.sum()
        return shares

    @cached_property
    def total(self) -> float:
        """The sum of all pairs, at least 0."""
        return max(float(self.pairs.sum()), 1e-9)

    @cached_property
    def length(self) -> float:
        """The mean number of distinct words in a document, at least 2: pairs grow by it, single words by its square root."""
        ratio = self.total / max(float(self.alone.sum()), 1e-9)
        return max(ratio**2 * self.share / (2.0 * (1.0 - self.share)), 2.0)

    @cached_property
    def _by_chance(self) -> Array:
        """q f of each word: pairs of words vary by chance with the product of theirs."""
        each = np.sqrt(2.0 * (1.0 - self.share)) / self.length  # what one document adds to a pair
        found: Array = np.sqrt(each * self.total) * self.frequencies
        return found

    @cached_property
    def factors(self) -> Array:
        """The factor of each word, by which both its row and its column are multiplied: then every number varies by 1 at most.

        With noise s and a variance q^2 f_i f_j of chance, (s^2 + q^2 f_i f_j) / ((s + q f_i) (s + q f_j)) is at most 1.
        """
        found: Array = 1.0 / np.sqrt(self.deviation + self._by_chance)
        return found

    def noise_beside(self, topics: Array) -> Array:
        """The variance of each word's product with topics (topics x words) over the even pairs, over the topic's square."""
        added = self.deviation / (self.deviation + self._by_chance)
        squares = np.square(topics)
        whole = np.maximum(squares.sum(axis=1), 1e-300)
        of_noise, of_chance = ((squares * part).sum(axis=1) / whole for part in (added, 1.0 - added))
        found: Array = of_noise[:, None] * added + of_chance[:, None] * (1.0 - added)
        return found

    @cached_property
    def even(self) -> Array:
        """The pairs times the factors of both words."""
        return self.pairs * self.factors * self.factors[:, None]

    @cached_property
    def spectrum(self) -> Array:
        """The eigenvalues of the even pairs over the edge of chance, largest first: beyond 1 they are no chance.

        They are rounded, so that the last bits of a library's solver decide nothing.
        """
        found: Array = np.round(np.linalg.eigvalsh(self.even)[::-1] / (2.0 * np.sqrt(len(self.alone))), 3)
        return found

    @property
    def beyond_chance(self) -> int:
        """How many directions stand beyond noise and chance."""
        return int((self.spectrum > 1.0).sum())
