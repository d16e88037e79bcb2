"""The exact curve of Gaussian answers: never below the truth, which is computed with fifty digits, and hardly above it."""

from __future__ import annotations

import math

import mpmath
import pytest
from dp_accounting.dp_event import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent

from securetm.accounting.bounds import PLD, bounds_of, by_losses
from securetm.accounting.closed_forms import delta_of, epsilon_of, sensitivity_of
from securetm.accounting.losses import composed, interval_for
from securetm.accounting.spends import Leaves


def true_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """With fifty digits."""
    with mpmath.workdps(50):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [0.01, 1.0, 11.0, 140.0])
def test_delta_is_never_below_the_truth_and_hardly_above(mu: float) -> None:
    for deviations in (-2.0, 0.0, 1.0, 3.0, 5.0, 7.0):
        epsilon = max(mu**2 / 2 + deviations * mu, 0.0)
        truth = true_delta(mu, epsilon)
        assert truth <= delta_of(mu, epsilon) <= truth * (1 + 1e-6 * (1 + epsilon / mu**2)) + mpmath.mpf("1e-300")


@pytest.mark.parametrize("mu", [0.3, 140.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_epsilon_is_the_least_for_its_delta_rounded_upwards(mu: float, delta: float) -> None:
    epsilon = epsilon_of(mu, delta)
    assert true_delta(mu, epsilon) <= delta
    assert true_delta(mu, epsilon - 3e-6) > delta
    assert epsilon_of(mu, 0.0) == math.inf


@pytest.mark.parametrize(
    "leaves", [((GaussianDpEvent(2.0), 3),), ((GaussianDpEvent(0.1), 4), (GaussianDpEvent(0.5), 2))], ids=["small", "large"]
)
def test_it_takes_the_place_of_a_distribution_on_a_grid(leaves: Leaves) -> None:
    bound = by_losses(leaves)
    assert sensitivity_of(leaves) == pytest.approx(
        math.sqrt(sum(n / event.noise_multiplier**2 for event, n in leaves)), rel=1e-12
    )
    assert bound.accountant == PLD
    assert bound.epsilon(1e-5) == epsilon_of(sensitivity_of(leaves), 1e-5)
    upwards = float(composed(leaves, interval_for(leaves)).get_epsilon_for_delta(1e-5))
    assert upwards == pytest.approx(bound.epsilon(1e-5), rel=1e-4)
    assert bound.epsilon(1e-5) <= min(one.epsilon(1e-5) for one in bounds_of(leaves)) + 1e-9


@pytest.mark.parametrize("other", [LaplaceDpEvent(1.0), PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)), GaussianDpEvent(0.0)])
def test_what_is_no_gaussian_has_no_such_curve(other: object) -> None:
    assert sensitivity_of(((GaussianDpEvent(0.2), 1), (other, 1))) == 0.0  # type: ignore[arg-type]
