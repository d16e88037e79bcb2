"""Whether one model is better than another one on the same documents, or only luckier with these: the paired bootstrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array

RESAMPLES = 2_000
_BLOCK = 1 << 22  # numbers that are drawn at once


@dataclass(frozen=True)
class Difference:
    """A mean difference over documents, its interval (95 of 100 hold), and how often chance alone does as much."""

    value: float
    low: float
    high: float
    chance: float  # two-sided; at least 1 / (RESAMPLES + 1)

    @property
    def sure(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


def paired_difference(mine: Array, other: Array, words: Array, seed: int = 0) -> Difference:
    """The difference of two sums over documents, per word: mine minus the other's.

    `mine` and `other` are one number per document (log-likelihoods, or 1 where a label is right), `words` what they are divided
    by (words, or 1 for each document). Documents are drawn with replacement, both numbers of a document together.
    """
    apart, words = np.asarray(mine, dtype=np.float64) - other, np.asarray(words, dtype=np.float64)
    if not words.sum() > 0 or not np.isfinite(apart).all():
        return Difference(*[float("nan")] * 4)
    drawn = _resampled(apart, words, np.random.default_rng(seed))
    low, high = np.quantile(drawn, (0.025, 0.975))
    beyond = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    chance = min(1.0, 2 * (beyond + 1) / (RESAMPLES + 1))
    return Difference(float(apart.sum() / words.sum()), float(low), float(high), chance)


def _resampled(apart: Array, words: Array, rng: np.random.Generator) -> Array:
    """The difference per word in each of many samples of the documents."""
    found, several = np.empty(RESAMPLES), max(1, _BLOCK // len(apart))
    for first in range(0, RESAMPLES, several):
        rows = rng.integers(0, len(apart), (min(several, RESAMPLES - first), len(apart)))
        found[first : first + len(rows)] = apart[rows].sum(axis=1) / np.maximum(words[rows].sum(axis=1), 1e-12)
    return found
