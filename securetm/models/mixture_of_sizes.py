"""Positive sizes behind normal noise of known deviations, with a prior of any form that is fitted to them all.

The prior is a mixture of narrow normal variables around a grid of sizes, and its weights make the noised numbers most probable
(Kiefer and Wolfowitz 1956). Each is as wide as the grid's steps, so that sizes come out as found where noise is small.
Every sum has a fixed order. It knows neither words nor privacy.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array

_SIZES, _PASSES = 80, 100
_CLEAR = 3.0  # deviations above which a number is surely no noise alone
_SMALL = 0.02  # of the typical deviation: a smaller size cannot be told from it
_RANGE = 1e6  # of the largest size to the smallest one, at most


def sizes_behind(found: Array, deviations: Array) -> tuple[Array, float]:
    """The posterior mean of each size, and the log density of all numbers. The larger the noise, the closer are the sizes."""
    found, deviations = np.ascontiguousarray(found), np.ascontiguousarray(deviations)
    clear = found > _CLEAR * deviations
    most = 1.05 * max(float(found[clear].max(initial=0.0)), _CLEAR * float(deviations.min()))
    least = max(min(_SMALL * float(np.median(deviations)), 1e-3 * most), most / _RANGE)
    grid = np.exp(np.linspace(math.log(least), math.log(most), _SIZES))
    out = np.empty(len(found))
    evidence = _fit(found, deviations, grid, _PASSES, out)
    return out, float(evidence)


@njit(cache=True, nogil=True, error_model="numpy")
def _fit(found: Array, deviations: Array, grid: Array, passes: int, out: Array) -> float:
    """Sets `out` to the posterior means after so many steps of expectation maximisation. Returns the log density."""
    widths, most = ((grid[1] / grid[0] - 1.0) * grid) ** 2, np.empty(len(found))
    chances, weights = _chances(found, deviations, grid, widths, most), np.full(len(grid), 1.0 / len(grid))
    evidence = 0.0
    for _ in range(passes):
        weigh(chances, weights)
    for v in range(len(found)):
        total, mean, noise = 0.0, 0.0, deviations[v] ** 2
        for g in range(len(grid)):
            chance = chances[v, g] * weights[g]
            total += chance
            mean += chance * (found[v] * widths[g] + grid[g] * noise) / (widths[g] + noise)
        out[v] = mean / total
        evidence += most[v] + math.log(total)
    return evidence


@njit(cache=True, nogil=True, error_model="numpy")
def _chances(found: Array, deviations: Array, grid: Array, widths: Array, most: Array) -> Array:
    """The density of each number under each part of the mixture, the largest of each number 1; its logarithm is in `most`."""
    chances = np.empty((len(found), len(grid)))
    for v in range(len(found)):
        most[v] = -math.inf
        for g in range(len(grid)):
            variance = deviations[v] ** 2 + widths[g]
            chances[v, g] = -0.5 * ((found[v] - grid[g]) ** 2 / variance + math.log(variance))
            most[v] = max(most[v], chances[v, g])
        for g in range(len(grid)):
            chances[v, g] = math.exp(chances[v, g] - most[v])
    return chances


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(chances: Array, weights: Array) -> None:
    """One step of expectation maximisation: a part weighs as much as the numbers that are likely its own."""
    fresh = np.zeros(len(weights))
    for v in range(len(chances)):
        total = 0.0
        for g in range(len(weights)):
            total += chances[v, g] * weights[g]
        for g in range(len(weights)):
            fresh[g] += chances[v, g] / total
    for g in range(len(weights)):
        weights[g] *= fresh[g] / len(chances)
