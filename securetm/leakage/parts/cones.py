"""Sums of non-negative multiples, taken apart: rows that all lie in one cone, and the few rays that the cone is made of.

Pure arithmetic on matrices. It knows no gradient and no document.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from securetm.contracts import Array

_SEVERAL = 3e-5  # how far apart two directions must be to count as two
_LEAST = 1e-7  # nothing nearer can be told apart from a product of directions in 64 bits


def extreme_rays(rows: Array, count: int) -> Array:
    """At most `count` rays, each of length one: the corners of the cone that holds all rows.

    A ray is found where some row lies on it alone (separable non-negative factorisation; Arora et al. 2012). Rows are first
    brought onto one plane, so that corners are the farthest points (successive projections; Gillis and Vavasis 2014).
    """
    towards = directions(rows)
    count = min(count, *towards.shape)
    if count < 1:
        return np.zeros((0, rows.shape[1]))
    narrow = towards @ np.linalg.svd(towards, full_matrices=False)[2][:count].T
    return np.asarray(towards[_corners(narrow / _heights(narrow)[:, None], count)])


def directions(rows: Array) -> Array:
    """The rows at length one; a row of zeros has no direction and stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    towards: Array = np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0)
    return towards


def _heights(rows: Array) -> Array:
    """How far each row reaches towards the point of their hull that is nearest to the origin, where all point forwards."""
    weights, _ = nnls(np.vstack([rows.T, np.ones(len(rows))]), np.append(np.zeros(rows.shape[1]), 1.0), maxiter=50 * len(rows))
    heights: Array = rows @ (rows.T @ weights)
    # Rows that lie in no cone, as noise does not, have no such point: then each stays where it is.
    return heights if heights.min() > 0 else np.ones(len(rows))


def _corners(points: Array, count: int) -> list[int]:
    """The points that the others lie between, the farthest first; each is then taken out of all others."""
    left, found = points.copy(), list[int]()
    for _ in range(count):
        squares = (left**2).sum(axis=1)
        farthest = int(squares.argmax())
        if squares[farthest] <= _SEVERAL**2:
            break
        found.append(farthest)
        towards = left[farthest] / np.sqrt(squares[farthest])
        left -= np.outer(left @ towards, towards)
    return found


def parallel(rows: Array, apart: Array) -> list[Array]:
    """Groups of two rows or more that point the same way; `apart` is how far noise may turn each of them."""
    towards, free, groups = directions(rows), np.ones(len(rows), dtype=bool), []
    free &= np.isfinite(apart) & (rows != 0).any(axis=1)
    for first in np.argsort(apart, kind="stable"):  # the surest first, so that groups grow around them
        if not free[first]:
            continue
        gaps = np.sqrt(np.maximum(2.0 - 2.0 * (towards @ towards[first]), 0.0))
        group = np.flatnonzero(free & (gaps <= np.maximum(apart + apart[first], _LEAST)))
        free[group] = False
        if len(group) > 1:
            groups.append(group)
    return groups
