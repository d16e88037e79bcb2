"""The loops of variational LDA over documents: their own topic shares, and the lengths and sum of their expected counts.

They know no privacy and keep nothing: what a document gives is a function of the document and of the shared topics alone.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array

_SETTLED = 1e-3  # of a topic's words in a document: its shares are found where no topic moves further
_LEAST = 1e-100  # of what is divided by: two of these multiplied are still above zero


@njit(cache=True, nogil=True, inline="always")
def digamma(x: float) -> float:
    """The derivative of log gamma above 0: stepped up to where its asymptotic series is exact to twelve digits."""
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
    ends: Array,
    words: Array,
    counts: Array,
    chances: Array,
    scale: Array,
    alpha: float,
    passes: int,
    leanings: Array,
    losses: Array,
) -> None:
    """The E-step of documents `first` to `last`: how much each leans to each topic, and minus the bound on its likelihood.

    `chances` is words x topics, exp of the expected log chance of a word, the largest of each word 1; `scale` is the
    logarithm of what each word was divided by. Leanings are scaled likewise: shares of topics need ratios alone.
    """
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
        said = 0.0
        for i in range(begin, end):
            said += counts[i] * (math.log(_chance(lean, chances[words[i]])) + scale[words[i]] + top)
        losses[d] = -said - _prior(gamma, alpha, counts[begin:end].sum())


@njit(cache=True, nogil=True, inline="always")
def _lean(gamma: Array, lean: Array) -> float:
    """exp of the expected log of each topic's share, the largest 1; returned is the logarithm of what they were divided by,
    but for the part that is the same for all topics."""
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
    """The bound's part that is about a document's shares, and about the part that `_lean` left out."""
    k, whole = len(gamma), 0.0
    for z in range(k):
        whole += gamma[z]
    common = digamma(whole)
    bound = math.lgamma(k * alpha) - math.lgamma(whole) - length * common
    for z in range(k):
        bound += (alpha - gamma[z]) * (digamma(gamma[z]) - common) + math.lgamma(gamma[z]) - math.lgamma(alpha)
    return bound


@njit(cache=True, nogil=True)
def lengths_of(order: Array, groups: Array, ends: Array, words: Array, counts: Array, chances: Array, leanings: Array) -> Array:
    """The l2 norm of each group's expected counts; group g is documents `order[groups[g]:groups[g + 1]]`, summed.

    A group is summed word by word on a board that is wiped with the same walk, so a long vocabulary costs nothing.
    """
    board = np.zeros(chances.shape)
    out = np.empty(len(groups) - 1)
    for g in range(len(out)):
        for d in order[groups[g] : groups[g + 1]]:
            _count(board, ends[d], ends[d + 1], words, counts, chances, leanings[d], 1.0)
        squares = 0.0
        for d in order[groups[g] : groups[g + 1]]:
            for i in range(ends[d], ends[d + 1]):
                for z in range(chances.shape[1]):
                    squares += board[words[i], z] ** 2
                    board[words[i], z] = 0.0
        out[g] = math.sqrt(squares)
    return out


@njit(cache=True, nogil=True)
def expected(ends: Array, words: Array, counts: Array, chances: Array, leanings: Array, weights: Array) -> Array:
    """The weighted sum of all documents' expected counts, words x topics."""
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
