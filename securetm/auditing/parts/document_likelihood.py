"""The largest log-likelihood of a document that any shares of given topics reach, compiled.

Manzonelli, Zhang and Vadhan (2024) recognise members by this number. It knows no run and no attack.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array

_PASSES = 60
_SETTLED = 1e-3  # the largest change of a share in the last pass
_LEAST = 1e-30  # the least probability of a word, also of one that a model never saw


def best_fits(counts: Any, topics: Array) -> Array:
    """Each document's log-likelihood under its best shares of these topics. `topics`: topics x words."""
    by_word, fits = np.ascontiguousarray(np.maximum(topics.T, _LEAST)), np.empty(counts.shape[0])
    _fit(counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data.astype(np.float64), by_word, fits)
    return fits


@njit(cache=True, nogil=True)
def _fit(ends: Array, words: Array, counts: Array, by_word: Array, fits: Array) -> None:
    """Expectation maximisation of each document's shares. No pass lowers the likelihood."""
    k = by_word.shape[1]
    share, fresh = np.empty(k), np.empty(k)
    for d in range(len(ends) - 1):
        begin, end = ends[d], ends[d + 1]
        length = counts[begin:end].sum()
        share[:] = 1.0 / k
        for _ in range(_PASSES):
            fresh[:] = 0.0
            for i in range(begin, end):
                row = by_word[words[i]]
                each = counts[i] / _chance(share, row)
                for z in range(k):
                    fresh[z] += each * row[z]
            moved = 0.0
            for z in range(k):
                now = share[z] * fresh[z] / length
                moved = max(moved, abs(now - share[z]))
                share[z] = now
            if moved < _SETTLED:
                break
        fits[d] = 0.0
        for i in range(begin, end):
            fits[d] += counts[i] * math.log(_chance(share, by_word[words[i]]))


@njit(cache=True, nogil=True, inline="always")
def _chance(share: Array, row: Array) -> float:
    chance = 0.0
    for z in range(len(share)):
        chance += share[z] * row[z]
    return chance
