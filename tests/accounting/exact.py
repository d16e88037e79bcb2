"""Exact privacy of small discrete answers, by enumeration: never above the truth, so that a bound below it is a fault.

Outcomes cut off at the far tails are left out, which only lowers the truth. Only `delta_at` asks the accountants.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from securetm.accounting.bounds import bounds_of
from securetm.accounting.composition import failure_cost
from securetm.accounting.spends import Spend, failure_probability_of, leaves_of
from securetm.contracts import Array


@dataclass(frozen=True)
class Pair:
    """The probabilities of the same outcomes with the unit and without it."""

    with_unit: Array
    without: Array

    def then(self, other: "Pair") -> "Pair":
        return Pair(np.outer(self.with_unit, other.with_unit).ravel(), np.outer(self.without, other.without).ravel())

    def times(self, count: int) -> "Pair":
        result = self
        for _ in range(count - 1):
            result = result.then(self)
        return result

    def sampled(self, rate: float) -> "Pair":
        return Pair((1 - rate) * self.without + rate * self.with_unit, self.without)

    def delta(self, epsilon: float) -> float:
        """The larger of both hockey-stick divergences."""
        factor = math.exp(epsilon)
        one = np.maximum(self.with_unit - factor * self.without, 0).sum()
        return float(max(one, np.maximum(self.without - factor * self.with_unit, 0).sum()))

    def epsilon(self, delta: float) -> float:
        """The least epsilon at this delta, from below."""
        return _from_below(self.delta, delta)


def _from_below(delta_of, delta: float) -> float:
    low, high = 0.0, 200.0
    if delta_of(0.0) <= delta:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
    return low


def shifted(noise: Array, *shifts: int) -> Pair:
    """One answer of several coordinates, each with this noise (centred), where the unit moves coordinate j by shifts[j]."""
    result = None
    for shift in shifts:
        moved, still = noise[: len(noise) - abs(shift)], noise[abs(shift) :]  # where the cut noise reaches both
        pair = Pair(moved, still) if shift >= 0 else Pair(still, moved)
        result = pair if result is None else result.then(pair)
    return result


def discrete_laplace(parameter: float, reach: int) -> Array:
    return np.asarray(stats.dlaplace.pmf(np.arange(-reach, reach + 1), parameter))


def discrete_gaussian(variance: float, shares: int, reach: int) -> Array:
    """The sum of so many discrete Gaussians of this variance parameter each."""
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    one, total = one / one.sum(), np.ones(1)
    for _ in range(shares):
        total = np.convolve(total, one)
    return total


def skellam(variance: float, reach: int) -> Array:
    return np.asarray(stats.skellam.pmf(np.arange(-reach, reach + 1), variance / 2, variance / 2))


def randomised_response(noise: float, buckets: int) -> Pair:
    """One value or another."""
    base = np.full(buckets, noise / buckets)
    return Pair(base + (1 - noise) * np.eye(buckets)[0], base + (1 - noise) * np.eye(buckets)[1])


def delta_at(spends: Sequence[Spend], epsilon: float) -> float:
    """The least delta that any accountant proves at this epsilon."""
    left = min(bound.delta(epsilon) for bound in bounds_of(leaves_of(spends)))
    return min(1.0, left + failure_cost(failure_probability_of(spends), epsilon))
