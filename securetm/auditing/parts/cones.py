"""Extreme rays of a cone: rows that are non-negative combinations of few rays, and the rays. Pure arithmetic on matrices."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from securetm.contracts import Array

_SEVERAL = 3e-5  # the least distance of two different directions
_LEAST = 1e-7  # the precision of a product of directions in 64 bits


def extreme_rays(rows: Array, count: int) -> Array:
    """At most `count` extreme rays of the cone that holds all rows, each of length one.

    A ray is found if some row is on it (separable non-negative factorisation; Arora et al. 2012). Rows are first projected
    onto one plane, where the rays are the farthest points (successive projections; Gillis and Vavasis 2014).
    """
    towards = directions(rows)
    count = min(count, *towards.shape)
    if count < 1:
        return np.zeros((0, rows.shape[1]))
    narrow = towards @ np.linalg.svd(towards, full_matrices=False)[2][:count].T
    return np.asarray(towards[_corners(narrow / _heights(narrow)[:, None], count)])


def directions(rows: Array) -> Array:
    """The rows at length one. A row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    towards: Array = np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0)
    return towards


def _heights(rows: Array) -> Array:
    """Each row's length along the point of the rows' convex hull that is nearest to the origin."""
    weights, _ = nnls(np.vstack([rows.T, np.ones(len(rows))]), np.append(np.zeros(rows.shape[1]), 1.0), maxiter=50 * len(rows))
    heights: Array = rows @ (rows.T @ weights)
    # Rows that are in no cone, such as noise, have no such point. Then each row stays.
    return heights if heights.min() > 0 else np.ones(len(rows))


def _corners(points: Array, count: int) -> list[int]:
    """The corners of the points' convex hull, the farthest first. Each is then projected out of all points."""
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
    """Groups of two or more parallel rows. `apart` is how far noise may turn each row."""
    towards, free, groups = directions(rows), np.ones(len(rows), dtype=bool), []
    free &= np.isfinite(apart) & (rows != 0).any(axis=1)
    for first in np.argsort(apart, kind="stable"):  # the most precise first, so groups form around them
        if not free[first]:
            continue
        gaps = np.sqrt(np.maximum(2.0 - 2.0 * (towards @ towards[first]), 0.0))
        group = np.flatnonzero(free & (gaps <= np.maximum(apart + apart[first], _LEAST)))
        free[group] = False
        if len(group) > 1:
            groups.append(group)
    return groups
