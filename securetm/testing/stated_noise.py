"""The distributions of the noise that mechanisms state, and how far drawn noise is from one of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from securetm.contracts import Array, Terms

CHANCE = 1e-9  # the probability that an honest mechanism fails


def deviation(scale: float) -> float:
    """Standard deviation of the two-sided geometric distribution."""
    kept = np.exp(-1 / scale)
    return float(np.sqrt(2 * kept) / (1 - kept))


def scale_of(deviation: float) -> float:
    """The scale whose standard deviation is this: the inverse of `deviation`, from 2 a = d^2 (1 - a)^2."""
    d2 = deviation**2
    kept = 1 + 1 / d2 - np.sqrt(1 + 2 * d2) / d2
    return float(-1 / np.log(kept))


def discrete_laplace(terms: Terms) -> Callable[[Array], Array]:
    """The cumulative distribution of two-sided geometric noise of the stated deviation."""
    kept = np.exp(-1 / scale_of(terms.deviation))

    def at(values: Array) -> Array:
        tail = kept ** np.abs(np.floor(values)) / (1 + kept)
        below: Array = np.where(values < 0, tail, 1 - tail * kept)
        return below

    return at


def rounded_gaussian(terms: Terms) -> Callable[[Array], Array]:
    """The cumulative distribution of Gaussian noise, rounded, of the stated deviation: rounding adds a twelfth."""
    sigma = np.sqrt(terms.deviation**2 - 1 / 12)
    return lambda values: np.asarray(stats.norm.cdf(np.floor(values) + 0.5, scale=sigma))


def discrete_gaussian(terms: Terms) -> Callable[[Array], Array]:
    """The cumulative distribution of the discrete Gaussian of the stated deviation, which beyond 2 is its parameter."""
    far = int(10 * terms.deviation) + 1
    below = np.cumsum(np.exp(-(np.arange(-far, far + 1) ** 2) / (2 * terms.deviation**2)))
    return lambda values: np.asarray((below / below[-1])[np.clip(np.floor(values).astype(int) + far, 0, 2 * far)])


def skellam(terms: Terms) -> Callable[[Array], Array]:
    """The cumulative distribution of Skellam noise of the stated deviation."""
    half = terms.deviation**2 / 2
    return lambda values: np.asarray(stats.skellam.cdf(np.floor(values), half, half))


def gaussian(terms: Terms) -> Callable[[Array], Array]:
    """The cumulative distribution of Gaussian noise of the stated deviation."""
    return lambda values: np.asarray(stats.norm.cdf(values, scale=terms.deviation))


def misfit(noise: Array, stated: Callable[[Array], Array]) -> float:
    """The distance of the noise from the stated distribution over what chance allows (Dvoretzky, Kiefer and Wolfowitz).

    They are compared at each value and just below it, which covers whole numbers too.
    """
    values, counts = np.unique(noise, return_counts=True)
    upto = np.cumsum(counts) / len(noise)
    just_below = stated(np.nextafter(values, -np.inf))
    furthest = max(np.abs(stated(values) - upto).max(), np.abs(just_below - (upto - counts / len(noise))).max())
    return float(furthest / np.sqrt(np.log(2 / CHANCE) / (2 * len(noise))))
