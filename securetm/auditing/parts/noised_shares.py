"""A party's table of counts from shares of it, where noise was added to the words before they were counted (iFTM).

It undoes the division by each topic's sum. It does not undo the noise, but subtracts the noise's mean.
"""

from __future__ import annotations

import numpy as np

from securetm.auditing.parts.rational_reconstruction import counts_behind, sum_behind
from securetm.contracts import Array, CountNoise, Profile

_LARGEST = 25.0  # the most that noise may add to a word of a topic: beyond it, single precision has lost the grid of the sums
_APART = (0.5, 2.0)  # the range in which a topic's size is searched, in parts of an equal share of the party's words


def noise_of(profile: Profile, words: int) -> CountNoise:
    """The noise in the words of documents, as the public profile says."""
    return next((noise for part in profile.mechanisms if (noise := part.count_noise(words)) is not None), CountNoise())


def table_behind(shares: Array, slots: float, noise: CountNoise) -> tuple[Array, Array]:
    """The table as it was counted, and without the noise's mean. A row that fits no counts stays empty.

    `slots` is the party's number of words, which it sends beside its table.
    """
    each = slots / max(len(shares), 1)
    counted = np.array([_row_behind(row, each, noise) for row in shares])
    inside = counted.sum(axis=1, keepdims=True) / (1.0 + shares.shape[1] * noise.mean)
    real: Array = np.maximum(np.rint(counted - inside * noise.mean), 0.0).astype(np.int64)
    return counted, real


def _row_behind(row: Array, each: float, noise: CountNoise) -> Array:
    """One row of the table. If continuous noise hides the row's sum, all topics are taken as equally large."""
    if noise.grid == 0.0:
        found = counts_behind(row)
        return np.zeros(row.shape) if found is None else found.astype(np.float64)
    likely = each * (1.0 + len(row) * noise.mean)
    fits = bool(np.isclose(row.sum(), 1.0, atol=1e-3)) and row.min() >= 0
    total = sum_behind(row, noise.grid, *(likely * part for part in _APART)) if fits and each * noise.mean < _LARGEST else None
    return row * (likely if total is None else total) if fits else np.zeros(row.shape)
