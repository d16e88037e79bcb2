"""Which word each column without a name is, by tables of frequencies and pairs: the parties' columns, and words of public text.

Frequencies are matched by rank. Pairs are matched by the assignment that agrees best with the public ones (Frank and Wolfe's
steps, after Vogelstein et al. 2015), begun at words of about the same frequency.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linear_sum_assignment

from securetm.contracts import Array

STEPS = 20
_NEAR = 0.1  # of the logarithm of a frequency: how far two ranks are taken for the same at the beginning
_RARE = 1e-4  # beside a share, so that no pair that is never met decides


def by_ranks(private: Array, public: Array) -> Array:
    """Which public word each column is, by the order of frequencies."""
    found = np.empty(len(private), dtype=np.int64)
    found[np.argsort(-private, kind="stable")] = np.argsort(-public, kind="stable")
    return found


def by_pairs(private: Array, public: Array) -> Array:
    """Which public word each column is, by how pairs agree. Both tables are symmetric, with frequencies on the diagonal."""
    ours, theirs = (np.log(np.maximum(np.diag(table), 0) + 1) for table in (private, public))
    weights = np.exp(-(((ours[:, None] - theirs[None]) / _NEAR) ** 2)) + 1e-12
    for _ in range(50):
        weights /= weights.sum(axis=1, keepdims=True)
        weights /= weights.sum(axis=0, keepdims=True)
    one, other = _told_by_pairs(private), _told_by_pairs(public)
    *_, found = _improved(one, other, weights)
    return found


def _improved(one: Array, other: Array, weights: Array) -> Iterator[Array]:
    """The best assignment after each step, until it stays the same."""
    before = np.zeros(len(one), dtype=np.int64)
    for _ in range(STEPS):
        product = one @ weights @ other
        _, found = linear_sum_assignment(-product)
        yield found
        if np.array_equal(found, before):
            return
        step = -weights
        step[np.arange(len(found)), found] += 1
        stepped = one @ step @ other
        square, line = float((stepped * step).sum()), float((product * step).sum() + (stepped * weights).sum())
        far = 1.0 if square >= 0 else min(1.0, max(0.0, -line / (2 * square)))
        weights, before = weights + far * step, found


def _told_by_pairs(table: Array) -> Array:
    """How much more often two words stand together than by chance, as logarithms."""
    lengths = np.sqrt(np.maximum(np.diag(table), 1e-9))
    shares = np.maximum(table / np.outer(lengths, lengths), 0)
    np.fill_diagonal(shares, 0)
    whole = shares.sum(axis=1)
    told_by: Array = np.log((shares + _RARE) / (np.outer(whole, whole) / max(whole.sum(), 1e-9) + _RARE))
    return told_by
