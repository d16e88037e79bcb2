"""Bounds the deviation of every word's weights over the topics. It reads parameters only, never documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array

# All but "no NaN" and "no infinity": diverging training has to show.
_FAST = {"nsz", "arcp", "contract", "afn", "reassoc"}


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def standardise(topics: Array, spread: Any, equal: bool) -> None:
    """Gives every word mean 0 and deviation `spread` over the topics, in place; at most `spread`, unless `equal`.

    Batch normalisation gives each word's logit one deviation over documents. One that is at most `spread` keeps a rare word,
    of which little is known, small.
    """
    real = topics.dtype.type
    count, width = real(topics.shape[0]), topics.shape[1]
    means, squares = np.zeros(width, topics.dtype), np.zeros(width, topics.dtype)
    for k in range(topics.shape[0]):
        _add(means, topics[k])
    means /= count
    for k in range(topics.shape[0]):
        _add_squares(squares, topics[k], means)
    rates = real(spread) / np.sqrt(squares / count + real(1e-12))
    if not equal:
        rates = np.minimum(rates, real(1.0))
    for k in range(topics.shape[0]):
        row = topics[k]
        for v in range(width):
            row[v] = (row[v] - means[v]) * rates[v]


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add(total: Array, row: Array) -> None:
    for v in range(len(row)):
        total[v] += row[v]


@njit(cache=True, fastmath=_FAST, error_model="numpy")
def _add_squares(total: Array, row: Array, means: Array) -> None:
    for v in range(len(row)):
        total[v] += (row[v] - means[v]) * (row[v] - means[v])
