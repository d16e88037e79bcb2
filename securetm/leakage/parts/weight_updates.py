"""The gradient behind one step of shared weights, as anybody who sees them before and after can work it out: pure arithmetic.

Plain steps give it back up to rounding. Adam's first step divides each number by its own size and adds a tiny constant to that
size; what the constant leaves of the size is read here. Later steps of Adam mix what came before, and are not undone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from securetm.contracts import Array
from securetm.models.neural.optimisers import ADAM, TINY

_ARITHMETIC = 3e-7  # how much the optimiser's own rounding may change a step, in parts of it
_NEAR = 0.98  # the cosine from which two rays are taken for one
_OUTSIDE = 10.0  # how far outside of the others' cone a ray lies, in squares of its error
_SAME_SIGNS = 0.4  # by how much signs agree more than they differ, before two rows are compared at all
_NEIGHBOURS = 200  # rays that are nearest to one are those that a mixture like it is made of
MOST_ROWS = 2000  # words whose rows are compared with each other; beyond it words are only named
_LEAST_SHARE = 0.04  # of a document's length: a smaller input is taken for an error


@dataclass(frozen=True)
class RecoveredGradient:
    """A mean gradient, and how far each number of it may be off."""

    values: Array
    errors: Array

    @property
    def blur(self) -> float:
        """The error of a typical number, in parts of it."""
        there = self.values != 0
        return float(np.median(self.errors[there] / np.abs(self.values[there]))) if there.any() else 0.0


def gradient_behind(before: Array, after: Array, optimiser: str, rate: float) -> RecoveredGradient:
    """The mean gradient of a plain step, or of Adam's first one."""
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
    """Rows that are multiples of each other within their errors, the largest group first; a row may be alone in its group."""
    sure = ((rows.values / rows.errors) ** 2).sum(axis=1)
    free, groups = np.ones(len(sure), dtype=bool), list[Array]()
    signs = np.sign(rows.values).astype(np.float32)
    for first in np.argsort(-sure, kind="stable"):  # the surest first, so that groups grow around them
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
    """How many times the ray each row is, and the mean square of what is left, in parts of both errors."""
    weights = rows.errors**-2.0
    times = (weights * rows.values * ray).sum(axis=1) / (weights * ray * ray).sum(axis=1)
    spread = rows.errors**2 + np.square(times[:, None] * errors)
    return times, ((rows.values - times[:, None] * ray) ** 2 / spread).mean(axis=1)


def edges(rows: RecoveredGradient, groups: list[Array], most: int) -> list[tuple[Array, Array]]:
    """Which groups are edges of the cone that all rows span, each with its ray: what no mixture of the others explains."""
    parts = [RecoveredGradient(rows.values[group], rows.errors[group]) for group in groups]
    rays, found = np.array([_ray(part) for part in parts]), list[int]()
    for i, part in enumerate(parts):
        if len(found) == most:
            break
        nearest = np.argsort(-(rays @ rays[i]), kind="stable")[: _NEIGHBOURS + len(part.values)]
        others = rays[nearest[(rays[nearest] @ rays[i]) < _NEAR]]
        sizes = np.linalg.norm(part.values, axis=1, keepdims=True)
        sure = np.sqrt(((sizes / part.errors) ** 2).sum(axis=0))
        outside = _left(others, rays[i], sure) ** 2 / len(sure) if len(others) else np.inf
        if outside > _OUTSIDE and not any(rays[j] @ rays[i] >= _NEAR for j in found):
            found.append(i)
    return [(groups[i], rays[i]) for i in found]


def _ray(rows: RecoveredGradient) -> Array:
    """The common direction of rows that are multiples of one, each number as sure as its error allows."""
    weights = rows.errors**-2.0
    ray = rows.values[int((weights * rows.values**2).sum(axis=1).argmax())]
    for _ in range(8):
        times = (weights * rows.values * ray).sum(axis=1) / (weights * ray * ray).sum(axis=1)
        ray = (weights * rows.values * times[:, None]).sum(axis=0) / (weights * times[:, None] ** 2).sum(axis=0)
    return np.asarray(ray / np.linalg.norm(ray))


def _left(rays: Array, row: Array, sure: Array) -> float:
    return float(nnls((rays * sure).T, row * sure, maxiter=100 * len(rays))[1])


def inputs_along(rays: Array, rows: RecoveredGradient) -> Array:
    """How much of each ray is in each row: rays x rows, what is too small to be a word's input left out."""
    sure = 1.0 / rows.errors
    solved = [nnls((rays * s).T, row * s, maxiter=100 * len(rays))[0] for row, s in zip(rows.values, sure, strict=True)]
    inputs = np.array(solved).T
    lengths = np.linalg.norm(inputs, axis=1, keepdims=True)
    return np.where(inputs > _LEAST_SHARE * lengths, inputs, 0.0)
