"""The compiled loops of variational LDA: the E-step of each document, and norms and sums of expected counts.

They know no privacy and keep nothing. A document's row is a function of the document and of the shared topics alone.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.compensated_sum import plus
from securetm.models.gibbs.lda_kernels import Bags

_SETTLED = 1e-3  # of a topic's words in a document: the E-step ends where no topic moves further
_LEAST = 1e-100  # of a divisor: the product of two such numbers is still above zero


@njit(cache=True, nogil=True, inline="always")
def digamma(x: float) -> float:
    """The derivative of log gamma above 0: recurrence up to 8, where the asymptotic series is exact to twelve digits."""
    stepped = 0.0
    while x < 8.0:
        stepped += 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))))
    return math.log(x) - 0.5 / x - series - stepped


@njit(cache=True, nogil=True)
def settle(
    first: int,
    last: int,
    bags: Bags,
    chances: Array,
    scale: Array,
    alpha: float,
    passes: int,
    leanings: Array,
    losses: Array,
) -> None:
    """The E-step of documents `first` to `last`: each topic's scaled weight in the document, and minus the document's bound.

    `chances` is words x topics: exp of the expected log probability of a word, scaled so that the largest of each word is 1;
    `scale` is the logarithm of each word's divisor. `leanings`, exp of the expected log topic shares, are scaled likewise:
    topic shares need ratios only.
    """
    ends, words, counts = bags
    k = chances.shape[1]
    gamma, fresh = np.empty(k), np.empty(k)
    for d in range(first, last):
        begin, end = ends[d], ends[d + 1]
        lean = leanings[d]
        gamma[:] = alpha + counts[begin:end].sum() / k
        for _ in range(passes):
            _lean(gamma, lean)
            fresh[:] = 0.0
            for i in range(begin, end):
                each = counts[i] / _chance(lean, chances[words[i]])
                for z in range(k):
                    fresh[z] += each * chances[words[i], z]
            moved = 0.0
            for z in range(k):
                now = alpha + lean[z] * fresh[z]
                moved = max(moved, abs(now - gamma[z]))
                gamma[z] = now
            if moved < _SETTLED:
                break
        top = _lean(gamma, lean)
        found = 0.0
        for i in range(begin, end):
            found += counts[i] * (math.log(_chance(lean, chances[words[i]])) + scale[words[i]] + top)
        losses[d] = -found - _prior(gamma, alpha, counts[begin:end].sum())


@njit(cache=True, nogil=True, inline="always")
def _lean(gamma: Array, lean: Array) -> float:
    """Sets `lean` to exp of the expected log topic shares, the largest 1. Returns the logarithm of the divisor, without the
    term that is the same for all topics."""
    top = -math.inf
    for z in range(len(gamma)):
        lean[z] = digamma(gamma[z])
        top = max(top, lean[z])
    for z in range(len(gamma)):
        lean[z] = max(math.exp(lean[z] - top), _LEAST)
    return top


@njit(cache=True, nogil=True, inline="always")
def _chance(lean: Array, chances: Array) -> float:
    total = 0.0
    for z in range(len(lean)):
        total += lean[z] * chances[z]
    return total


@njit(cache=True, nogil=True, inline="always")
def _prior(gamma: Array, alpha: float, length: float) -> float:
    """The bound's terms of a document's topic shares, and the term that `_lean` leaves out."""
    k, whole = len(gamma), 0.0
    for z in range(k):
        whole += gamma[z]
    common = digamma(whole)
    bound = math.lgamma(k * alpha) - math.lgamma(whole) - length * common
    for z in range(k):
        bound += (alpha - gamma[z]) * (digamma(gamma[z]) - common) + math.lgamma(gamma[z]) - math.lgamma(alpha)
    return bound


@njit(cache=True, nogil=True)
def lengths_of(
    order: Array, groups: Array, bags: Bags, chances: Array, leanings: Array, weights: Array, of_totals: float
) -> Array:
    """The l2 norm of each group's summed expected counts, each times the weight of its word; `of_totals` times the square of
    a word's weighted total is added to the squares.

    Group g is documents `order[groups[g]:groups[g + 1]]`.

    One buffer serves all groups. Only the entries that a group filled are cleared, so a long vocabulary costs nothing.
    """
    ends, words, counts = bags
    filled = np.zeros(chances.shape)
    out = np.empty(len(groups) - 1)
    for g in range(len(out)):
        for d in order[groups[g] : groups[g + 1]]:
            _count(filled, ends[d], ends[d + 1], words, counts, chances, leanings[d], 1.0)
        squares, lost = 0.0, 0.0
        for d in order[groups[g] : groups[g + 1]]:
            for i in range(ends[d], ends[d + 1]):
                total = 0.0
                for z in range(chances.shape[1]):
                    total += filled[words[i], z]
                    squares, lost = plus(squares, lost, (weights[words[i]] * filled[words[i], z]) ** 2)
                    filled[words[i], z] = 0.0
                squares, lost = plus(squares, lost, of_totals * (weights[words[i]] * total) ** 2)
        out[g] = math.sqrt(squares)
    return out


@njit(cache=True, nogil=True)
def expected(bags: Bags, chances: Array, leanings: Array, weights: Array) -> Array:
    """The weighted sum of all documents' expected counts, words x topics."""
    ends, words, counts = bags
    out = np.zeros(chances.shape)
    for d in range(len(ends) - 1):
        if weights[d] != 0.0:
            _count(out, ends[d], ends[d + 1], words, counts, chances, leanings[d], weights[d])
    return out


@njit(cache=True, nogil=True, inline="always")
def _count(out: Array, begin: int, end: int, words: Array, counts: Array, chances: Array, lean: Array, weight: float) -> None:
    for i in range(begin, end):
        each = weight * counts[i] / _chance(lean, chances[words[i]])
        for z in range(len(lean)):
            out[words[i], z] += each * lean[z] * chances[words[i], z]
