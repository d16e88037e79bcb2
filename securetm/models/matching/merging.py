"""Merges matched topics down to a requested number. It is post-processing, and not in the paper.

The paper's model keeps every topic that Algorithm 3 finds. Merging is a function of the found topics alone: it asks no party,
and nothing is random.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.matching.matching import NOWHERE


def merged(counts: Array, most: int) -> Array:
    """The merged topic that each topic became part of, numbered by their first topics; an empty topic has NOWHERE.

    Each step merges the pair with the least loss until `most` topics are left: the squared Hellinger distance times
    m1 m2 / (m1 + m2), where m are their counts (Ward's method). So similar pairs are merged first, and of equally similar pairs
    the one with less data. Of equal losses the first pair is merged first.
    """
    table = np.asarray(counts, dtype=np.float64)
    filled = np.flatnonzero(table.sum(axis=1) > 0)
    member = _merged(np.ascontiguousarray(table[filled]), most)
    _, first, group = np.unique(member, return_index=True, return_inverse=True)
    found = np.full(len(table), NOWHERE, dtype=np.int64)
    found[filled] = np.argsort(np.argsort(first))[group]
    return found


def summed(rows: Array, member: Array) -> Array:
    """The sum of the rows of each merged topic."""
    total = np.zeros((int(member.max(initial=NOWHERE)) + 1, *rows.shape[1:]))
    np.add.at(total, member[member != NOWHERE], rows[member != NOWHERE])
    return total


@njit(cache=True, nogil=True)
def _merged(counts: Array, most: int) -> Array:
    """The first topic of each topic's set. Sums run in a fixed order, so every processor merges alike."""
    member, masses, roots = np.arange(len(counts)), np.zeros(len(counts)), np.zeros_like(counts)
    for z in range(len(counts)):
        masses[z] = _refreshed(counts[z], roots[z])
    losses = _all_losses(masses, roots)
    nearest = np.array([np.argmin(losses[z]) for z in range(len(counts))])
    for _ in range(len(counts) - most):
        best = _best(losses, nearest, member)
        one, other = min(best, nearest[best]), max(best, nearest[best])
        for w in range(counts.shape[1]):
            counts[one, w] += counts[other, w]
        for z in range(len(member)):
            if member[z] == other:
                member[z] = one
        masses[one] = _refreshed(counts[one], roots[one])
        for z in range(len(member)):
            losses[other, z] = losses[z, other] = np.inf
        _update_nearest(losses, nearest, member, masses, roots, one, other)
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
    """The total weight of a topic. Writes the square roots of its shares to `roots`."""
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
def _update_nearest(losses: Array, nearest: Array, member: Array, masses: Array, roots: Array, one: int, other: int) -> None:
    """Updates losses and nearest topics after `other` became part of `one`. All pairs are searched only where the nearest topic
    was one of the two."""
    for z in range(len(member)):
        if z != one and member[z] == z:
            losses[one, z] = losses[z, one] = _loss(masses, roots, one, z)
    for z in range(len(member)):
        now = losses[z, nearest[z]]
        if z == one or nearest[z] == one or nearest[z] == other:
            nearest[z] = np.argmin(losses[z])
        elif losses[z, one] < now or (losses[z, one] == now and one < nearest[z]):
            nearest[z] = one
