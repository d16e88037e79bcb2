"""Merges topics down to a number that was asked for. It is post-processing of the matched topics.

It is not in the paper, whose model keeps every topic that Algorithm 3 finds. It is a function of the found topics alone: it
asks no party anything, and nothing of it is random.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.matching.matching import NOWHERE


def merged(counts: Array, most: int) -> Array:
    """Which merged topic each topic became part of, at most so many, numbered by their first; an empty topic goes nowhere.

    Step by step the two topics become one whose joint topic stands for them with the least loss: their squared Hellinger
    distance, times m1 m2 / (m1 + m2) where m are their counts (Ward's method). So two that are alike go first, and of pairs
    that are equally alike the one with less data. Of equal losses the first pair goes first.
    """
    table = np.asarray(counts, dtype=np.float64)
    said = np.flatnonzero(table.sum(axis=1) > 0)
    member = _merged(np.ascontiguousarray(table[said]), most)
    _, first, group = np.unique(member, return_index=True, return_inverse=True)
    found = np.full(len(table), NOWHERE, dtype=np.int64)
    found[said] = np.argsort(np.argsort(first))[group]
    return found


def summed(rows: Array, member: Array) -> Array:
    """The sum of the rows of each merged topic."""
    total = np.zeros((int(member.max(initial=NOWHERE)) + 1, *rows.shape[1:]))
    np.add.at(total, member[member != NOWHERE], rows[member != NOWHERE])
    return total


@njit(cache=True, nogil=True)
def _merged(counts: Array, most: int) -> Array:
    """For each topic the first one of its set. Sums run in a fixed order, so every processor merges alike."""
    member, masses, roots = np.arange(len(counts)), np.zeros(len(counts)), np.zeros_like(counts)
    for z in range(len(counts)):
        masses[z] = _refreshed(counts[z], roots[z])
    losses = _all_losses(masses, roots)
    nearest = np.array([np.argmin(losses[z]) for z in range(len(counts))])
    for _ in range(len(counts) - most):
        best = _best(losses, nearest, member)
        one, other = min(best, nearest[best]), max(best, nearest[best])
        counts[one] += counts[other]
        member[member == other] = one
        masses[one] = _refreshed(counts[one], roots[one])
        losses[other], losses[:, other] = np.inf, np.inf
        _seek_anew(losses, nearest, member, masses, roots, one, other)
    return member


@njit(cache=True, nogil=True)
def _all_losses(masses: Array, roots: Array) -> Array:
    """The loss of merging every pair of different topics."""
    losses = np.full((len(masses), len(masses)), np.inf)
    for z in range(len(masses)):
        for y in range(z):
            losses[z, y] = losses[y, z] = _loss(masses, roots, z, y)
    return losses


@njit(cache=True, nogil=True)
def _refreshed(row: Array, roots: Array) -> float:
    """The total weight of a topic. Writes the square roots of its shares to `out`."""
    mass = 0.0
    for w in range(len(row)):
        mass += row[w]
    for w in range(len(row)):
        roots[w] = np.sqrt(row[w] / mass)
    return mass


@njit(cache=True, nogil=True)
def _loss(masses: Array, roots: Array, one: int, other: int) -> float:
    """The loss of merging these two topics, never below 0."""
    alike = 0.0
    for w in range(roots.shape[1]):
        alike += roots[one, w] * roots[other, w]
    loss: float = max(1.0 - alike, 0.0) * (masses[one] * masses[other] / (masses[one] + masses[other]))
    return loss


@njit(cache=True, nogil=True)
def _best(losses: Array, nearest: Array, member: Array) -> int:
    """The first topic with the least loss of merging with its nearest one."""
    best = -1
    for z in range(len(nearest)):
        if member[z] == z and (best < 0 or losses[z, nearest[z]] < losses[best, nearest[best]]):
            best = z
    return best


@njit(cache=True, nogil=True)
def _seek_anew(losses: Array, nearest: Array, member: Array, masses: Array, roots: Array, one: int, other: int) -> None:
    """Losses and nearest topics after `other` became part of `one`; looked for among all only where it was one of them."""
    for z in range(len(member)):
        if z != one and member[z] == z:
            losses[one, z] = losses[z, one] = _loss(masses, roots, one, z)
    for z in range(len(member)):
        now = losses[z, nearest[z]]
        if z == one or nearest[z] == one or nearest[z] == other:
            nearest[z] = np.argmin(losses[z])
        elif losses[z, one] < now or (losses[z, one] == now and one < nearest[z]):
            nearest[z] = one
