"""A party's table of counts out of shares of it, where noise was in the words before they were counted (iFTM).

It undoes the division by each topic's sum. What noise hides it does not bring back: it takes off what noise adds on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array, Profile
from securetm.leakage.parts.rational_reconstruction import counts_behind, sum_behind
from securetm.mechanisms.laplace_counts import LaplaceCounts

_LARGEST = 25.0  # of what noise adds to a word of a topic: beyond it, single precision has lost the grid of the sums
_APART = (0.5, 2.0)  # how far from an equal share of the party's words a topic's share is looked for


@dataclass(frozen=True)
class WordNoise:
    """What noise adds to each word of each slot on average, and the grid of all sums: 0 where they are whole numbers."""

    mean: float = 0.0
    grid: float = 0.0


def noise_of(profile: Profile, words: int) -> WordNoise:
    """As the profile says, which everybody may read: of what lies above the threshold, its chance times its mean."""
    parts = [part for part in profile.mechanisms if isinstance(part, LaplaceCounts)]
    if not parts:
        return WordNoise()
    law, epsilon = parts[0].law(words), parts[0].epsilon
    beyond = 1.0 / np.expm1(epsilon) if law.whole else 1.0 / epsilon  # of the first step above the threshold, on average
    return WordNoise(law.chance * (law.least / law.steps + float(beyond)), 0.0 if law.whole else 1.0 / law.steps)


def table_behind(shares: Array, slots: float, noise: WordNoise) -> tuple[Array, Array]:
    """The table as it was counted, and what is left of it without the noise's mean; a row that fits nothing stays empty.

    `slots` is how many words the party has, which it says beside its table.
    """
    each = slots / max(len(shares), 1)
    counted = np.array([_row_behind(row, each, noise) for row in shares])
    inside = counted.sum(axis=1, keepdims=True) / (1.0 + shares.shape[1] * noise.mean)
    real: Array = np.maximum(np.rint(counted - inside * noise.mean), 0.0).astype(np.int64)
    return counted, real


def _row_behind(row: Array, each: float, noise: WordNoise) -> Array:
    """Where continuous noise left no trace of the row's sum, every topic is taken to be as large as the others."""
    if noise.grid == 0.0:
        found = counts_behind(row)
        return np.zeros(row.shape) if found is None else found.counts.astype(np.float64)
    likely = each * (1.0 + len(row) * noise.mean)
    fits = bool(np.isclose(row.sum(), 1.0, atol=1e-3)) and row.min() >= 0
    total = sum_behind(row, noise.grid, *(likely * part for part in _APART)) if fits and each * noise.mean < _LARGEST else None
    return row * (likely if total is None else total) if fits else np.zeros(row.shape)
