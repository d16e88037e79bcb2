"""Discrete Gaussian shares spend no more than the Gaussian that they are charged as (`protocols/gaussian_shares.md`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from scipy import integrate

from securetm.accounting.composition import by_accountant
from securetm.accounting.spends import Spend
from securetm.contracts import Array, Block, Cohort, Domain, Terms
from securetm.contracts.events import SymmetricZCDpEvent
from securetm.mechanisms.noise_shares import NEGLIGIBLE, NoiseShares, as_one_gaussian, ripple
from tests.accounting.exact import Pair, delta_at, discrete_gaussian, shifted

EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.0, 4.0)
DIRECTIONS = ((1,), (7,), (3, -2), (4, -1, 2))


def cohort(shares: int) -> Cohort:
    return Cohort(b"round", 0, tuple(map(str, range(shares))), threshold=shares)


def spend(variance: float, shares: int, *moved: int, rate: float = 1.0, count: int = 1) -> Spend:
    """What is charged for a unit that moves the sum as said."""
    l2 = math.hypot(*moved)
    terms = Terms((Block("all", (len(moved),)),), domain=Domain.INTEGER, bits=64, l2=l2, sampling=rate)
    mechanism = NoiseShares(math.sqrt(variance * shares) / l2)
    terms = mechanism.admit(terms, cohort(shares))
    return Spend(mechanism.event(terms, cohort(shares)), mechanism.failure_probability(terms, cohort(shares)), count)


def truth(variance: float, shares: int, *moved: int) -> Pair:
    return shifted(discrete_gaussian(variance, shares, math.ceil(7 * math.sqrt(variance))), *moved)


def understated(pair: Pair, claimed: Spend) -> bool:
    return any(pair.delta(epsilon) > delta_at([claimed], epsilon) * (1 + 1e-9) + 1e-14 for epsilon in EPSILONS)


@pytest.mark.parametrize("moved", DIRECTIONS)
@pytest.mark.parametrize(("variance", "shares"), [(9.0, 3), (25.0, 2)])
def test_no_direction_spends_more_than_is_charged(variance: float, shares: int, moved: tuple[int, ...]) -> None:
    claimed, pair = spend(variance, shares, *moved), truth(variance, shares, *moved)
    assert isinstance(claimed.event, GaussianDpEvent)
    assert not understated(pair, claimed)
    assert understated(truth(variance / 4, shares, *moved), claimed), "half of the noise passes"
    for rate in (0.02, 0.3):
        assert not understated(pair.sampled(rate), spend(variance, shares, *moved, rate=rate))


@pytest.mark.parametrize("moved", [(7,)])
def test_several_answers_spend_no_more_than_is_charged(moved: tuple[int, ...]) -> None:
    for rate in (1.0, 0.3):
        pair = truth(9.0, 3, *moved).sampled(rate).times(2)
        assert not understated(pair, spend(9.0, 3, *moved, rate=rate, count=2))


@pytest.mark.parametrize(("multiplier", "rate"), [(0.7, 1.0), (2.0, 0.1), (6.0, 1.0)])
def test_the_figure_is_within_three_in_a_hundred_of_the_gaussians(multiplier: float, rate: float) -> None:
    """At a deviation of eight and a half steps of the grid; the grids of real sums are finer."""
    l2 = 8.5 / multiplier
    terms = Terms((Block("all", (100_000,)),), domain=Domain.INTEGER, bits=64, l2=l2, sampling=rate)
    shares = NoiseShares(multiplier)
    terms = shares.admit(terms, cohort(3))
    claimed = Spend(shares.event(terms, cohort(3)), shares.failure_probability(terms, cohort(3)), 5)
    ideal: Any = GaussianDpEvent(multiplier)
    best = Spend(PoissonSampledDpEvent(rate, ideal) if rate < 1 else ideal, 0.0, 5)
    found, least = (by_accountant([one], 1e-5)[0].epsilon for one in (claimed, best))
    assert least <= found <= 1.03 * least


@pytest.mark.parametrize(("smoothing", "centre"), [(0.3, 0), (0.6, 3)])
def test_a_rounded_gaussian_is_a_discrete_one_but_for_the_ripple(smoothing: float, centre: int) -> None:
    """Step 3 of the proof, integrated."""
    within, x = 4.0, np.arange(-40, 41)

    def mixed(y: float) -> Array:
        weights = np.exp(-((x - y) ** 2) / (2 * smoothing))
        density = math.exp(-((y - centre) ** 2) / (2 * within)) / math.sqrt(2 * math.pi * within)
        chances: Array = density * weights / weights.sum()
        return chances

    law, _ = integrate.quad_vec(mixed, centre - 25, centre + 25, epsabs=1e-13, limit=2000)
    aim = np.exp(-((x - centre) ** 2) / (2 * (within + smoothing)))
    apart = np.abs(law - aim / aim.sum()).sum() / 2
    first = ripple(smoothing)
    bound = ripple(smoothing * within / (smoothing + within)) * first * (1 + first) / (1 - first)
    assert apart <= bound + 1e-13
    assert apart >= bound / 50, "the bound is far from what it bounds"


def test_unequal_shares_add_up_to_one_discrete_gaussian_too() -> None:
    variances = (0.7, 0.4, 1.5, 0.4)
    summed = np.ones(1)
    for variance in variances:
        summed = np.convolve(summed, discrete_gaussian(variance, 1, 40))
    x = np.arange(len(summed)) - len(summed) // 2
    aim = np.exp(-(x**2) / (2 * sum(variances)))
    apart = np.abs(summed - aim / aim.sum()).sum() / 2
    assert 0 < apart <= sum(ripple(0.4 * k / (k + 1)) for k in range(1, 4))


def test_narrow_shares_keep_the_bound_by_divergences() -> None:
    for variance, shares in ((5.0, 2), (2.0, 40), (0.5, 4)):
        assert as_one_gaussian(1000, variance, shares) is None
        claimed = spend(variance, shares, 3)
        assert isinstance(claimed.event, SymmetricZCDpEvent)
        assert not understated(truth(variance, shares, 3), claimed)


def test_the_distance_stays_negligible_and_the_variance_gives_little() -> None:
    for size, variance, shares in ((1, 30.0, 1), (10**6, 20.0, 5), (760_000, 1e6, 100)):
        found = as_one_gaussian(size, variance, shares)
        assert found is not None
        left, apart = found
        assert apart <= 2 * NEGLIGIBLE * (1 + 1e-9)
        assert 1.3 < variance * shares - left < 2


def test_the_distance_is_that_of_all_coordinates_together() -> None:
    assert as_one_gaussian(1, 6.4, 10) is not None
    assert as_one_gaussian(10**6, 6.4, 10) is None


def test_very_wide_shares_are_one_gaussian_too() -> None:
    """With little smoothing beside all noise, a difference of nearly equal numbers would be rounded to none."""
    found = as_one_gaussian(2_001_000, 1e20, 2)
    assert found is not None
    variance, distance = found
    assert variance == pytest.approx(2e20)
    assert 0 < distance < 1e-12
