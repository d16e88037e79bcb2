"""The other way round: noise, rates and counts for a budget are found, fit, and could hardly be better."""

import math

import pytest
from dp_accounting.dp_event import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent

from securetm.accounting.calibration import PRECISION, BudgetTooSmall, noise_for
from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.contracts.events import SymmetricZCDpEvent
from securetm.errors import BadSetting

DELTA = 1e-5


def sampled(noise, rate=0.01, count=1_000):
    return [Spend(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count=count)]


def gentle(noise, count=1_000):
    """Larger batches with more noise: losses do not reach as far, so that composing them often is quick."""
    return sampled(noise, 0.05, count)


@pytest.mark.parametrize(
    ("make", "epsilon"),
    [
        (gentle, 1.0),
        (lambda noise: [Spend(GaussianDpEvent(noise))], 0.1),
        (lambda noise: [Spend(LaplaceDpEvent(noise), 1e-12)], 2.0),
        (lambda noise: [*gentle(6.0), Spend(SymmetricZCDpEvent(0.5 / noise**2, 0.0))], 3.0),
    ],
)
def test_the_least_noise_fits_and_a_thousandth_less_does_not(make, epsilon):
    noise = noise_for(make, epsilon, DELTA, 0.01, 1_000)
    assert total(make(noise), DELTA).epsilon <= epsilon
    assert total(make(noise * (1 - 1.1 * PRECISION)), DELTA).epsilon > epsilon


def test_pure_noise_is_found_without_delta():
    assert noise_for(lambda noise: [Spend(LaplaceDpEvent(noise), count=4)], 2.0, 0.0, 0.1, 100) == pytest.approx(
        2, rel=PRECISION
    )


def test_a_budget_that_little_noise_meets_takes_little_noise():
    assert noise_for(lambda noise: [Spend(GaussianDpEvent(noise))], 50.0, DELTA, 1.0, 10.0) == 1.0


def test_a_budget_that_nothing_meets_is_named():
    with pytest.raises(BudgetTooSmall, match=r"no noise between 0\.1 and 2 "):
        noise_for(lambda noise: [Spend(GaussianDpEvent(noise))], 0.01, DELTA, 0.1, 2.0)
    with pytest.raises(BudgetTooSmall):
        noise_for(lambda noise: [Spend(GaussianDpEvent(noise), 1e-3)], 1.0, DELTA, 0.1, 2.0)


@pytest.mark.parametrize("bad", [0.0, math.nan])
def test_ranges_and_budgets_that_are_none_are_refused(bad):
    for ask in (
        lambda: noise_for(sampled, 1.0, DELTA, bad, 10.0),
        lambda: noise_for(sampled, 1.0, DELTA, 0.1, bad),
        lambda: noise_for(sampled, bad, DELTA, 0.1, 10.0),
    ):
        with pytest.raises(BadSetting):
            ask()
