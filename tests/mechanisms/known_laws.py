"""Laws of noise as textbooks have them, and how likely draws are under one. It tests nothing itself."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.special import ive

from securetm.contracts import Array
from securetm.mechanisms.samplers import discrete_gaussian, discrete_laplace, rounded_gaussian, skellam

DRAWS = 1_000_000
CELLS = 200
RARE = 1e-12  # of a true sampler's failures: about 150 comparisons fail together less often than once in 10^9 runs

Below = Callable[[Array], Array]  # the chance of at most k


def laplace_below(scale: float) -> Below:
    side = 1 / (1 + math.exp(-1 / scale))
    return lambda k: np.where(
        k < 0, side * np.exp(np.minimum(k, 0) / scale), 1 - side * np.exp(-(np.maximum(k, 0) + 1) / scale)
    )


def rounded_below(sigma: float) -> Below:
    return lambda k: stats.norm.cdf((k + 0.5) / sigma)


def gaussian_below(sigma: float) -> Below:
    """By summing the weights; where there are too many, the integral, which is right to exp(-2 pi^2 sigma^2)."""
    if sigma > 1000:
        return rounded_below(sigma)
    every = np.arange(-math.ceil(12 * sigma) - 2, math.ceil(12 * sigma) + 3)
    weights = np.exp(-0.5 * (every / sigma) ** 2)
    sums = np.cumsum(weights / weights.sum())
    return lambda k: sums[np.clip(np.asarray(k, dtype=np.int64) - every[0], 0, len(every) - 1)]


def skellam_below(variance: float) -> Below:
    """Bessel functions by scipy, exponentially scaled; beyond a variance of 1e6 a Gaussian differs by less than 1e-6."""
    if variance > 1e6:
        return rounded_below(math.sqrt(variance))
    top = math.ceil(12 * math.sqrt(variance)) + 20
    sums = np.cumsum(ive(np.abs(np.arange(-top, top + 1)), variance))
    return lambda k: sums[np.clip(np.asarray(k, dtype=np.int64) + top, 0, 2 * top)]


LAWS = {
    "laplace": (discrete_laplace, laplace_below, [0.3, 1.0, 8.0, 127.5, 128.0, 1000.0, 1e6, 1e8]),
    "gaussian": (discrete_gaussian, gaussian_below, [0.3, 1.0, 8.0, 127.5, 128.0, 1000.0, 1e6, 1e8]),
    "rounded": (rounded_gaussian, rounded_below, [0.15, 0.3, 1.0, 8.0, 127.5, 128.0, 1000.0, 1e6, 1e8]),
    "skellam": (skellam, skellam_below, [0.1, 1.0, 64.0, 40_000.0, 2.0**24, 1e12]),
}
CASES = [(name, parameter) for name, (_, _, parameters) in LAWS.items() for parameter in parameters]


def p_value(drawn: Array, below: Below, deviation: float) -> float:
    """Chi-square over about `CELLS` cells of whole numbers that expect at least ten draws each."""
    reach = 5 * deviation
    edges = np.unique(np.round(np.linspace(-reach, reach, CELLS - 1)).astype(np.int64))
    chances = np.diff(np.concatenate(([0.0], below(edges), [1.0])))
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    kept = chances * len(drawn) >= 10
    chances, counts = np.append(chances[kept], chances[~kept].sum()), np.append(counts[kept], counts[~kept].sum())
    expected = chances * len(drawn)
    if expected[-1] < 5:
        assert counts[-1] <= 40
        expected, counts = expected[:-1], counts[:-1]
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(expected) - 1))
