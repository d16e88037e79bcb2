"""The mixture decoder's passes over a batch on a CPU: loops over one document after the other, with sums in a fixed order.

They read a document's own words; only lengths, which a clip asks for, read the whole vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.neural.elementary import log
from securetm.models.neural.row_sums import LANES, folded, sum_of_squares

Cells = tuple[Array, Array, Array]
LEAST = 1e-30  # a word's probability counts as this much at least, so that its quotient stays finite
_ROUNDED = 2.0**-40  # of the terms of a gradient: more than rounding takes from their sum


@njit(cache=True, error_model="numpy")
def mix(cells: Cells, shares: Array, likely: Array, out: Cells) -> None:
    """Each document's loss, its words' quotients, and its topics' pulls."""
    (ends, words, counts), (losses, quotients, pulls) = cells, out
    for i in range(len(losses)):
        mine = slice(ends[i], ends[i + 1])
        ours, found, among = words[mine], quotients[mine], counts[mine]
        found[:] = 0.0
        for k in range(shares.shape[1]):
            share, row = np.float64(shares[i, k]), likely[k]
            for j in range(len(ours)):
                found[j] += share * row[ours[j]]
        loss = 0.0
        for j in range(len(ours)):
            probability = max(found[j], LEAST) if found[j] == found[j] else found[j]
            loss -= among[j] * log(probability)
            found[j] = among[j] / probability
        losses[i] = loss
        _pull(ours, found, likely, pulls[i])


@njit(cache=True, error_model="numpy")
def _pull(words: Array, quotients: Array, likely: Array, out: Array) -> None:
    for k in range(len(out)):
        row, pull = likely[k], 0.0
        for j in range(len(words)):
            pull += quotients[j] * row[words[j]]
        out[k] = pull


@njit(cache=True, error_model="numpy")
def add_gradient(cells: tuple[Array, Array], given: Cells, likely: Array, slope: Any, out: tuple[Array, Array]) -> None:
    """The sum over documents of factor times gradient; `out` holds zeros before."""
    (ends, words), (factors, quotients, pulls), (topics, background) = cells, given, out
    levels = np.zeros(len(likely), topics.dtype)
    for i in range(len(factors)):
        for k in range(len(likely)):
            factor, row = factors[i, k], topics[k]
            levels[k] += factor * pulls[i, k]
            for j in range(ends[i], ends[i + 1]):
                row[words[j]] += factor * quotients[j]
    for k in range(len(likely)):
        row, probabilities, level = topics[k], likely[k], levels[k]
        for v in range(len(row)):
            row[v] = probabilities[v] * (level - row[v])
            background[v] += row[v]
            row[v] *= slope


@njit(cache=True, error_model="numpy")
def squares(cells: Cells, factors: tuple[Array, Array, Array], likely: Array, slope: float, out: tuple[Array, Array]) -> None:
    """The squared lengths of each document's gradients of topics and background, with what rounding of a sum may add."""
    (ends, words, counts), (shares, quotients, pulls), (topics, background) = cells, factors, out
    width = likely.shape[1]
    found, behind = np.zeros(width), np.empty(width)
    lanes, whole = np.empty(LANES), np.empty(len(likely))
    for k in range(len(likely)):
        whole[k] = sum_of_squares(likely[k], 0.0, lanes)
    for i in range(len(shares)):
        mine = slice(ends[i], ends[i + 1])
        ours = words[mine]
        for j in range(len(ours)):
            found[ours[j]] = quotients[mine][j]
        behind[:] = 0.0
        square, terms, expected = 0.0, 0.0, 0.0
        for k in range(len(likely)):
            share, pull = np.float64(shares[i, k]), pulls[i, k]  # numba's float() leaves 32 bits
            square += share * share * _add_row(likely[k], pull, share, found, behind, lanes)
            terms += share * share * (pull * pull * whole[k] + _squared(likely[k], ours, quotients[mine]))
            expected += share * pull * math.sqrt(whole[k])
        for j in range(len(ours)):
            found[ours[j]] = 0.0
        rounded = _ROUNDED * math.sqrt(2.0 * terms)
        topics[i] = (slope * (math.sqrt(square) + rounded)) ** 2
        length = math.sqrt(sum_of_squares(behind, 0.0, lanes))
        known = math.sqrt(sum_of_squares(counts[mine], 0.0, lanes))
        background[i] = (length + _ROUNDED * (expected + known)) ** 2


@njit(cache=True, error_model="numpy")
def _add_row(row: Array, pull: float, share: float, found: Array, behind: Array, lanes: Array) -> float:
    """The squared length of one topic's gradient but for its share, which is added to the background's."""
    lanes[:] = 0.0
    for first in range(0, len(row), LANES):
        probabilities, quotients = row[first : first + LANES], found[first : first + LANES]
        out = behind[first : first + LANES]
        for v in range(len(out)):
            one = probabilities[v] * (pull - quotients[v])
            lanes[v] += one * one
            out[v] += share * one
    return np.float64(folded(lanes))


@njit(cache=True, error_model="numpy")
def _squared(row: Array, words: Array, quotients: Array) -> float:
    square = 0.0
    for j in range(len(words)):
        square += (row[words[j]] * quotients[j]) ** 2
    return square
