"""The compiled loops of NMF: documents' weights and topic weights, sums and norms of rows, and the step of the topics.

They know no privacy and keep nothing. All sums run in a fixed order: a document's numbers are a function of the document and of
the shared topics alone.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.compensated_sum import plus
from securetm.models.gibbs.lda_kernels import Bags

COUNTS, LOG, L2 = 0, 1, 2  # what a word of a document weighs
_SETTLED = 1e-7  # of the largest topic weight: the solve ends where no weight moves further
_LEAST = 1e-12  # of a topic's squared length


@njit(cache=True, nogil=True)
def weighed(bags: Bags, kind: int) -> Array:
    """What each word of each document weighs: its count, log(1 + count), or its count over the length of the document's row."""
    ends, _, counts = bags
    out = np.empty(len(counts))
    for d in range(len(ends) - 1):
        squares = 0.0
        for i in range(ends[d], ends[d + 1]):
            squares += float(counts[i]) * counts[i]
        for i in range(ends[d], ends[d + 1]):
            if kind == LOG:
                out[i] = math.log1p(counts[i])
            else:
                out[i] = counts[i] / math.sqrt(squares) if kind == L2 else counts[i]
    return out


@njit(cache=True, nogil=True)
def overlaps(topics: Array) -> Array:
    """The products of every topic with every topic (topics x words)."""
    k, width = topics.shape
    out = np.empty((k, k))
    for i in range(k):
        for j in range(i, k):
            whole = 0.0
            for v in range(width):
                whole += topics[i, v] * topics[j, v]
            out[i, j], out[j, i] = whole, whole
    return out


@njit(cache=True, nogil=True)
def solve(
    first: int, last: int, bags: Bags, weights: Array, by_word: Array, gram: Array, passes: int, out: Array, losses: Array
) -> None:
    """The non-negative topic weights that are nearest to each document, from zero, and half the squared distance that is left.

    Coordinate descent over the topics in their order. Topics have length 1 or 0, so the weights are no longer than the
    document; where few passes leave more, they are scaled to it.
    """
    ends, words, _ = bags
    k = by_word.shape[1]
    slopes = np.empty(k)
    for d in range(first, last):
        slopes[:] = 0.0
        squares = 0.0
        for i in range(ends[d], ends[d + 1]):
            squares += weights[i] * weights[i]
            for z in range(k):
                slopes[z] -= weights[i] * by_word[words[i], z]
        losses[d] = 0.5 * squares + _descend(out[d], slopes, gram, passes)
        _bound(out[d], math.sqrt(squares))


@njit(cache=True, nogil=True, inline="always")
def _descend(found: Array, slopes: Array, gram: Array, passes: int) -> float:
    """Sets `found` to the least of a quadratic whose slopes at zero are given. Returns its value there."""
    k, value = len(found), 0.0
    found[:] = 0.0
    for _ in range(passes):
        moved, largest = 0.0, 0.0
        for z in range(k):
            if gram[z, z] <= _LEAST:
                continue
            now = max(found[z] - slopes[z] / gram[z, z], 0.0)
            step = now - found[z]
            if step != 0.0:
                value += step * (slopes[z] + 0.5 * step * gram[z, z])
                for j in range(k):
                    slopes[j] += step * gram[z, j]
                found[z] = now
            moved, largest = max(moved, abs(step)), max(largest, now)
        if moved <= _SETTLED * largest:
            break
    return value


@njit(cache=True, nogil=True, inline="always")
def _bound(found: Array, most: float) -> None:
    squares = 0.0
    for z in range(len(found)):
        squares += found[z] * found[z]
    length = math.sqrt(squares)
    if length > most:
        for z in range(len(found)):
            found[z] *= most / length


@njit(cache=True, nogil=True, inline="always")
def _add(d: int, bags: Bags, weights: Array, topics: Array, scale: float, together: Array, words_of: Array) -> None:
    """Adds one document's row: the products of its topic weights, and of its words with them (words x topics).

    A column of `topics` beyond those of `together` is the weight of its words by themselves.
    """
    ends, words, _ = bags
    k, wide = len(together), topics.shape[1]
    for z in range(k):
        if topics[d, z] != 0.0:
            for j in range(k):
                together[z, j] += scale * topics[d, z] * topics[d, j]
    for i in range(ends[d], ends[d + 1]):
        for z in range(wide):
            words_of[words[i], z] += scale * weights[i] * topics[d, z]


@njit(cache=True, nogil=True)
def summed(bags: Bags, weights: Array, topics: Array, scales: Array, k: int, vocabulary: int) -> tuple[Array, Array]:
    """The scaled sum of the documents' rows, of `k` topics."""
    together, words_of = np.zeros((k, k)), np.zeros((vocabulary, topics.shape[1]))
    for d in range(len(scales)):
        if scales[d] != 0.0:
            _add(d, bags, weights, topics, scales[d], together, words_of)
    return together, words_of


@njit(cache=True, nogil=True)
def lengths_of(
    order: Array, groups: Array, bags: Bags, weights: Array, topics: Array, scales: Array, k: int, vocabulary: int
) -> Array:
    """The l2 norm of each group's summed scaled rows; group g is documents `order[groups[g]:groups[g + 1]]`."""
    ends, words, _ = bags
    wide = topics.shape[1]
    together, words_of = np.zeros((k, k)), np.zeros((vocabulary, wide))
    out = np.empty(len(groups) - 1)
    for g in range(len(out)):
        for d in order[groups[g] : groups[g + 1]]:
            _add(d, bags, weights, topics, scales[d], together, words_of)
        squares, lost = 0.0, 0.0
        for z in range(k):
            for j in range(k):
                squares, lost = plus(squares, lost, together[z, j] ** 2)
        for d in order[groups[g] : groups[g + 1]]:
            for i in range(ends[d], ends[d + 1]):
                for z in range(wide):
                    squares, lost = plus(squares, lost, words_of[words[i], z] ** 2)
                    words_of[words[i], z] = 0.0  # so that no word counts twice, and the next group begins at zero
        together[:] = 0.0
        out[g] = math.sqrt(squares)
    return out


@njit(cache=True, nogil=True)
def improve(topics: Array, together: Array, words_of: Array, sweeps: int) -> None:
    """Block coordinate descent on the topics (topics x words), one after the other, documents' topic weights being fixed."""
    k, width = topics.shape
    slope = np.empty(width)
    most = 0.0
    for z in range(k):
        most = max(most, together[z, z])
    for _ in range(sweeps):
        for z in range(k):
            if together[z, z] <= _LEAST * most:
                continue  # no document has this topic
            slope[:] = words_of[z]
            for j in range(k):
                for v in range(width):
                    slope[v] -= together[z, j] * topics[j, v]
            for v in range(width):
                topics[z, v] = max(topics[z, v] + slope[v] / together[z, z], 0.0)
