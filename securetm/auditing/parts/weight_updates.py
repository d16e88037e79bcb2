"""The gradient behind one step of shared weights, from the weights before and after it. Pure arithmetic.

A plain step gives the gradient up to rounding. Adam's first step divides each number by its own size plus a tiny constant; the
constant keeps a little of the size, which is read here. Later steps of Adam mix several gradients and are not inverted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from securetm.contracts import Array
from securetm.models.neural.optimisers import ADAM, TINY

_ARITHMETIC = 3e-7  # the rounding of the optimiser, as a share of a step
_NEAR = 0.98  # the cosine from which on two rays count as one
_OUTSIDE = 10.0  # how far outside the others' cone a ray must lie, in squares of its error
_SAME_SIGNS = 0.4  # the least correlation of signs before two rows are compared
_NEIGHBOURS = 200  # the nearest rays, which a mixture may consist of
MOST_ROWS = 2000  # words whose rows are compared with each other; beyond it words are only named
_LEAST_SHARE = 0.04  # of a document's length; a smaller input counts as an error


@dataclass(frozen=True)
class RecoveredGradient:
    """A mean gradient, and the possible error of each number."""

    values: Array
    errors: Array

    @property
    def blur(self) -> float:
        """The relative error of a typical number."""
        there = self.values != 0
        return float(np.median(self.errors[there] / np.abs(self.values[there]))) if there.any() else 0.0


def gradient_behind(before: Array, after: Array, optimiser: str, rate: float) -> RecoveredGradient:
    """The mean gradient of a plain step, or of Adam's first step."""
    moved = before.astype(np.float64) - after.astype(np.float64)
    rounding = np.maximum(np.spacing(np.abs(before)), np.spacing(np.abs(after))).astype(np.float64) / 2
    if optimiser != ADAM:
        return RecoveredGradient(moved / rate, rounding / rate)
    share = np.abs(moved) / rate  # of the full step: size / (size + TINY)
    off = rounding / rate + _ARITHMETIC * (before.dtype == np.float32) * share
    share = np.minimum(share, 1.0 - np.maximum(off, np.finfo(np.float64).eps))
    sizes = TINY * share / (1.0 - share)
    return RecoveredGradient(np.sign(moved) * sizes, (sizes + TINY) ** 2 / TINY * off)


def groups_alike(rows: RecoveredGradient) -> list[Array]:
    """Groups of rows that are multiples of each other within their errors, the largest first. A group may have one row."""
    precision = ((rows.values / rows.errors) ** 2).sum(axis=1)
    free, groups = np.ones(len(precision), dtype=bool), list[Array]()
    signs = np.sign(rows.values).astype(np.float32)
    for first in np.argsort(-precision, kind="stable"):  # the most precise first, so groups form around them
        if free[first]:
            near = np.flatnonzero(free & (signs @ signs[first] > _SAME_SIGNS * signs.shape[1]))
            times, off = _compared(
                RecoveredGradient(rows.values[near], rows.errors[near]), rows.values[first], rows.errors[first]
            )
            group = np.union1d(near[(times > 0) & (off < 1.0)], [first])
            free[group] = False
            groups.append(group)
    return sorted(groups, key=len, reverse=True)


def _compared(rows: RecoveredGradient, ray: Array, errors: Array) -> tuple[Array, Array]:
    """The multiple of the ray that fits each row, and the mean squared residual, relative to both errors."""
    weights = rows.errors**-2.0
    times = (weights * rows.values * ray).sum(axis=1) / (weights * ray * ray).sum(axis=1)
    spread = rows.errors**2 + np.square(times[:, None] * errors)
    return times, ((rows.values - times[:, None] * ray) ** 2 / spread).mean(axis=1)


def edges(rows: RecoveredGradient, groups: list[Array], most: int) -> list[tuple[Array, Array]]:
    """The groups that are extreme rays of the cone of all rows, each with its ray: no mixture of the others explains it."""
    parts = [RecoveredGradient(rows.values[group], rows.errors[group]) for group in groups]
    rays, found = np.array([_ray(part) for part in parts]), list[int]()
    for i, part in enumerate(parts):
        if len(found) == most:
            break
        nearest = np.argsort(-(rays @ rays[i]), kind="stable")[: _NEIGHBOURS + len(part.values)]
        others = rays[nearest[(rays[nearest] @ rays[i]) < _NEAR]]
        sizes = np.linalg.norm(part.values, axis=1, keepdims=True)
        precision = np.sqrt(((sizes / part.errors) ** 2).sum(axis=0))
        outside = _left(others, rays[i], precision) ** 2 / len(precision) if len(others) else np.inf
        if outside > _OUTSIDE and not any(rays[j] @ rays[i] >= _NEAR for j in found):
            found.append(i)
    return [(groups[i], rays[i]) for i in found]


def _ray(rows: RecoveredGradient) -> Array:
    """The common direction of parallel rows, weighted by their errors."""
    weights = rows.errors**-2.0
    ray = rows.values[int((weights * rows.values**2).sum(axis=1).argmax())]
    for _ in range(8):
        times = (weights * rows.values * ray).sum(axis=1) / (weights * ray * ray).sum(axis=1)
        ray = (weights * rows.values * times[:, None]).sum(axis=0) / (weights * times[:, None] ** 2).sum(axis=0)
    return np.asarray(ray / np.linalg.norm(ray))


def _left(rays: Array, row: Array, precision: Array) -> float:
    return float(nnls((rays * precision).T, row * precision, maxiter=100 * len(rays))[1])


def inputs_along(rays: Array, rows: RecoveredGradient) -> Array:
    """How much of each ray is in each row: rays x rows. Values that are too small for a word's input are 0."""
    precision = 1.0 / rows.errors
    solved = [nnls((rays * s).T, row * s, maxiter=100 * len(rays))[0] for row, s in zip(rows.values, precision, strict=True)]
    inputs = np.array(solved).T
    lengths = np.linalg.norm(inputs, axis=1, keepdims=True)
    return np.where(inputs > _LEAST_SHARE * lengths, inputs, 0.0)
