"""The compiled loops of `moments`: lengths and sums of documents' rows. They know no privacy and keep nothing.

A row is the upper half of a symmetric matrix of words x words, row by row: the number of word w with itself is at
`w * (2 V - w + 1) / 2`. No row is made; all sums run in a fixed order.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.compensated_sum import plus
from securetm.models.gibbs.lda_kernels import Bags


@njit(cache=True, nogil=True, inline="always")
def _add(out: Array, begin: int, end: int, words: Array, vocabulary: int, alone: float, pair: float) -> None:
    """Adds one document's row: `alone` for each of its words, `pair` for each two of them. Words are in order."""
    for i in range(begin, end):
        first = words[i]
        place = first * (2 * vocabulary - first + 1) // 2 - first
        out[place + first] += alone
        for j in range(i + 1, end):
            out[place + words[j]] += pair


@njit(cache=True, nogil=True)
def summed(bags: Bags, alone: Array, pairs: Array, weights: Array, vocabulary: int) -> Array:
    """The weighted sum of the documents' rows."""
    ends, words, _ = bags
    out = np.zeros(vocabulary * (vocabulary + 1) // 2)
    for d in range(len(weights)):
        if weights[d] != 0.0:
            _add(out, ends[d], ends[d + 1], words, vocabulary, weights[d] * alone[d], weights[d] * pairs[d])
    return out


@njit(cache=True, nogil=True)
def lengths_of(order: Array, groups: Array, bags: Bags, alone: Array, pairs: Array, vocabulary: int) -> Array:
    """The l2 norm of each group's summed rows; group g is documents `order[groups[g]:groups[g + 1]]`.

    One document's length follows from its number of words. Several documents fill one buffer, of which only the entries that
    they filled are cleared.
    """
    ends, words, _ = bags
    out = np.empty(len(groups) - 1)
    filled = np.zeros(1)
    for g in range(len(out)):
        first = order[groups[g]]
        if groups[g + 1] - groups[g] == 1:
            count = float(ends[first + 1] - ends[first])
            out[g] = math.sqrt(count * alone[first] ** 2 + 0.5 * count * (count - 1.0) * pairs[first] ** 2)
            continue
        if len(filled) == 1:
            filled = np.zeros(vocabulary * (vocabulary + 1) // 2)
        for d in order[groups[g] : groups[g + 1]]:
            _add(filled, ends[d], ends[d + 1], words, vocabulary, alone[d], pairs[d])
        out[g] = math.sqrt(_emptied(filled, order[groups[g] : groups[g + 1]], bags, vocabulary))
    return out


@njit(cache=True, nogil=True, inline="always")
def _emptied(filled: Array, documents: Array, bags: Bags, vocabulary: int) -> float:
    """The sum of squares of all entries that these documents filled. They are 0 afterwards, so that none counts twice."""
    ends, words, _ = bags
    squares, lost = 0.0, 0.0
    for d in documents:
        for i in range(ends[d], ends[d + 1]):
            first = words[i]
            place = first * (2 * vocabulary - first + 1) // 2 - first
            for j in range(i, ends[d + 1]):
                squares, lost = plus(squares, lost, filled[place + words[j]] ** 2)
                filled[place + words[j]] = 0.0
    return squares


@njit(cache=True, nogil=True)
def improve(
    topics: Array, gram: Array, words_of: Array, noise: Array, factors: Array, expected: Array, spread: Array, least: float
) -> None:
    """One step of block coordinate descent on each topic (topics x words), beside another factor that is fixed.

    `gram` are the products of that factor's topics, `words_of` its products with the pairs, `noise` each topic's variance of a
    word's product over the square of the factor. A topic is read as a posterior mean: its words are expected in the shares
    `expected`, and apart from these by `spread`, both times the topic's mass.
    """
    k, width = topics.shape
    slope = np.empty(width)
    for z in range(k):
        length = max(gram[z, z], 1e-9)
        slope[:] = words_of[z]
        for j in range(k):
            for v in range(width):
                slope[v] -= gram[z, j] * topics[j, v]
        mass = 0.0
        for v in range(width):
            mass += topics[z, v] / factors[v]
        for v in range(width):
            middle = mass * expected[z, v] * factors[v]
            apart = (mass * spread[z, v] * factors[v]) ** 2
            found = topics[z, v] + slope[v] / length - middle
            topics[z, v] = middle + max(found * apart / (apart + noise[z, v] / length + 1e-300), (least - 1.0) * middle)
