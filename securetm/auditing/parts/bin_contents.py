"""One or two documents from the sum of their inputs in one bin: whole counts, checked by the inputs' lengths.

Each input is the log1p of counts at length one, so all words that occur once in a document have the same number. Two numbers
that explain all words are two documents. This separation is our own. It knows no gradient and no imprint.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from securetm.auditing.parts.word_bags import readings
from securetm.contracts import Array

_LENGTH = 0.01  # the largest error of a length
_LEVELS = np.log1p(np.arange(13))  # counts that are tried when two documents are separated
_MOST_WORDS = 200  # of two documents together
_MOST_VALUES = 24  # different numbers that may belong to a word that occurs once
_LEAST = 0.2  # the share of the smaller of two documents


def one_document(inputs: Array, error: float) -> list[Array]:
    """The counts of a single document with these inputs, as one row, if their length is one."""
    if abs(float(np.linalg.norm(inputs)) - 1.0) > _LENGTH or inputs.min(initial=0.0) < -6 * error:
        return []
    return [counts[None, :] for counts in readings(np.where(inputs > 4 * error, inputs, 0.0))[:1]]


def two_documents(inputs: Array, error: float) -> list[Array]:
    """Every pair of documents with a weighted sum of inputs equal to these: two rows of counts each, the best pair first.

    The weights add up to one. `error` is the largest error of each number.
    """
    there = np.flatnonzero(inputs > 4 * error)
    if not 2 <= len(there) <= _MOST_WORDS or inputs.min() < -6 * error:
        return []
    numbers, found = inputs[there], list[tuple[float, Array]]()
    for one, two in combinations(_values(numbers, error), 2):
        fit = _explained(numbers, one / _LEVELS[1], two / _LEVELS[1], error)
        if fit is not None:
            found.append(fit)
    pairs = [np.zeros((2, len(inputs)), dtype=np.int64) for _ in found]
    for pair, (_, counts) in zip(pairs, sorted(found, key=lambda fit: fit[0]), strict=True):
        pair[:, there] = counts
    return pairs


def _values(numbers: Array, error: float) -> list[float]:
    """The different numbers among these, the most frequent first."""
    order = np.sort(numbers)
    groups = np.split(order, np.flatnonzero(np.diff(order) > 2 * error) + 1)
    return [float(group.mean()) for group in sorted(groups, key=len, reverse=True)[:_MOST_VALUES]]


def _explained(numbers: Array, one: float, two: float, error: float) -> tuple[float, Array] | None:
    """The misfit of two scales, and the counts; nothing if the scales do not explain all numbers, or the lengths do not fit."""
    if abs(one - two) * _LEVELS[1] <= 2 * error:  # the words of the two could not be separated
        return None
    sums = (one * _LEVELS[:, None] + two * _LEVELS[None, :]).ravel()
    misses = np.abs(numbers[:, None] - sums)
    nearest = misses.argmin(axis=1)
    worst = float(misses[np.arange(len(numbers)), nearest].max())
    counts = np.array(np.divmod(nearest, len(_LEVELS)))
    parts = np.array([one, two]) * np.linalg.norm(_LEVELS[counts], axis=1)
    if worst > 3 * error or parts.min() < _LEAST or abs(parts.sum() - 1.0) > _LENGTH:
        return None
    return worst, counts
