"""No accountant's epsilon is below the truth, where it can be enumerated, is published, or computed with fifty digits."""

from __future__ import annotations

import math
import warnings

import mpmath
import pytest
from dp_accounting.dp_event import (
    DiscreteLaplaceDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    ZCDpEvent,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from securetm.accounting.bounds import PLD, bounds_of, by_losses
from securetm.accounting.closed_forms import delta_of, epsilon_of, sensitivity_of
from securetm.accounting.composition import by_accountant, total
from securetm.accounting.losses import composed, interval_for
from securetm.accounting.spends import Leaves, Spend
from securetm.accounting.tradeoff import best_true_positive_rate
from securetm.contracts.events import SymmetricZCDpEvent

from .exact import delta_at, discrete_gaussian, discrete_laplace, randomised_response, shifted, skellam

DELTAS = (0.2, 1e-2, 1e-4, 1e-6)


def event_of_shares(variance, shares, l1, l2, dimensions):
    """Kairouz, Liu and Steinke 2021, theorem 1, as one zCDP event."""
    tau = 10 * sum(math.exp(-2 * math.pi**2 * variance * k / (k + 1)) for k in range(1, shares))
    whole = shares * variance
    epsilon = min(
        math.sqrt(l2**2 / whole + tau * dimensions / 2),
        l2 / math.sqrt(whole) + tau * math.sqrt(dimensions),
        math.sqrt(l2**2 / whole + 2 * tau * l1 / math.sqrt(whole) + tau**2 * dimensions),
    )
    return SymmetricZCDpEvent(epsilon**2 / 2, 0.0)


def events_of_skellam(variance, l1, l2):
    """Agarwal, Kairouz and Liu 2021, theorem 3.5: both branches as xi + rho x order."""
    rho = l2**2 / (2 * variance)
    return (
        SymmetricZCDpEvent(rho + l2**2 / (2 * variance**2), max(0.0, (6 * l1 - l2**2) / (4 * variance**2))),
        SymmetricZCDpEvent(rho, 3 * l1 / (2 * variance)),
    )


def agrees(truth, spends, tight=None):
    for delta in DELTAS:
        exact = truth.epsilon(delta)
        found = by_accountant(spends, delta)
        assert found
        for one in found:
            assert one.epsilon >= exact - 1e-9, (one, exact)
        assert delta_at(spends, exact) >= min(delta, truth.delta(exact)) * (1 - 1e-9) - 1e-15
        if tight is not None:
            assert found[0].epsilon <= exact * (1 + tight) + 2e-3, (found[0], exact)


@pytest.mark.parametrize(("parameter", "count"), [(0.3, 3), (1.0, 2), (2.5, 1)])
def test_discrete_laplace_is_never_understated_and_tight(parameter, count):
    truth = shifted(discrete_laplace(parameter, 30), 1).times(count)
    agrees(truth, [Spend(DiscreteLaplaceDpEvent(parameter, 1), count=count)], tight=0.01)


@pytest.mark.parametrize("shifts", [(3,), (2, 1), (1, 1, 1), (2, -1)])
def test_one_coordinate_is_the_worst_of_all_with_the_same_l1(shifts):
    truth = shifted(discrete_laplace(0.7, 18), *shifts)
    agrees(truth, [Spend(DiscreteLaplaceDpEvent(0.7, 3))], tight=0.01 if len(shifts) == 1 else None)
    agrees(truth.sampled(0.2), [Spend(PoissonSampledDpEvent(0.2, DiscreteLaplaceDpEvent(0.7, 3)))])


@given(st.floats(0.2, 3), st.floats(0.01, 1), st.integers(1, 2), st.integers(1, 3))
@settings(deadline=None, max_examples=10)
def test_sampled_discrete_laplace_is_never_understated(parameter, rate, count, sensitivity):
    truth = shifted(discrete_laplace(parameter, 25), sensitivity).sampled(rate).times(count)
    agrees(truth, [Spend(PoissonSampledDpEvent(rate, DiscreteLaplaceDpEvent(parameter, sensitivity)), count=count)])


@given(st.floats(0.05, 0.95), st.integers(2, 4), st.integers(1, 3), st.floats(0.05, 1))
@settings(deadline=None, max_examples=10)
def test_randomised_response_is_never_understated(noise, buckets, count, rate):
    truth = randomised_response(noise, buckets)
    agrees(
        truth.times(count), [Spend(RandomizedResponseDpEvent(noise, buckets), count=count)], tight=None if buckets > 2 else 0.02
    )
    sampled = Spend(PoissonSampledDpEvent(rate, RandomizedResponseDpEvent(noise, buckets)), count=count)
    agrees(truth.sampled(rate).times(count), [sampled])


@pytest.mark.parametrize(("variance", "shares"), [(0.5, 3), (4.0, 1)])
@pytest.mark.parametrize("shifts", [(2,), (3, -2)])
def test_shares_of_discrete_gaussian_noise_are_never_understated(variance, shares, shifts):
    noise = discrete_gaussian(variance, shares, math.ceil(8 * math.sqrt(variance)))
    event = event_of_shares(variance, shares, sum(map(abs, shifts)), math.hypot(*shifts), len(shifts))
    agrees(shifted(noise, *shifts), [Spend(event)])
    for rate in (0.02, 0.3):
        agrees(shifted(noise, *shifts).sampled(rate), [Spend(PoissonSampledDpEvent(rate, event))])


@pytest.mark.parametrize("variance", [2.0, 16.0])
@pytest.mark.parametrize("shifts", [(3,), (2, -1)])
def test_skellam_noise_is_never_understated(variance, shifts):
    noise = skellam(variance, math.ceil(9 * math.sqrt(variance)) + 6)
    truth = shifted(noise, *shifts)
    for event in events_of_skellam(variance, sum(map(abs, shifts)), math.hypot(*shifts)):
        agrees(truth, [Spend(event)])
        for rate in (0.02, 0.3):
            agrees(truth.sampled(rate), [Spend(PoissonSampledDpEvent(rate, event))])
            if len(shifts) == 1:
                agrees(truth.sampled(rate).times(2), [Spend(PoissonSampledDpEvent(rate, event), count=2)])


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_an_answer_without_symmetry_costs_more_and_is_never_understated(rate):
    noise = skellam(16.0, 40)
    for event in events_of_skellam(16.0, 2, 2):
        bare = ZCDpEvent(event.rho, event.xi)
        agrees(shifted(noise, 2).sampled(rate), [Spend(PoissonSampledDpEvent(rate, bare))])
        one, other = (by_accountant([Spend(PoissonSampledDpEvent(rate, e), count=50)], 1e-5)[0].epsilon for e in (bare, event))
        assert one > other


def test_mixed_answers_are_never_understated():
    noise = skellam(16.0, 40)
    truth = shifted(noise, 2).sampled(0.3).then(shifted(discrete_laplace(0.8, 25), 1)).then(randomised_response(0.5, 2))
    for event in events_of_skellam(16.0, 2, 2):
        spends = [
            Spend(PoissonSampledDpEvent(0.3, event)),
            Spend(DiscreteLaplaceDpEvent(0.8, 1)),
            Spend(RandomizedResponseDpEvent(0.5, 2)),
        ]
        agrees(truth, spends)


def test_laplace_and_gaussian_answers_meet_their_closed_forms():
    gaussian = [Spend(GaussianDpEvent(1.3))]
    for epsilon in (0.0, 0.5, 2.0):
        exact = special.ndtr(0.5 / 1.3 - 1.3 * epsilon) - math.exp(epsilon) * special.ndtr(-0.5 / 1.3 - 1.3 * epsilon)
        assert exact <= delta_at(gaussian, epsilon) <= exact * 1.001 + 1e-9
    for epsilon in (0.0, 0.3, 0.9):
        exact = -math.expm1((epsilon - 1) / 2)
        assert exact - 1e-12 <= delta_at([Spend(LaplaceDpEvent(1.0))], epsilon) <= exact * 1.001


@given(st.floats(0.5, 2), st.integers(1, 3), st.floats(0.001, 0.5))
@settings(deadline=None, max_examples=8)
def test_no_threshold_test_beats_the_best_true_positive_rate(parameter, count, wrong):
    truth = shifted(discrete_laplace(parameter, 25), 1).times(count)
    most = best_true_positive_rate([Spend(DiscreteLaplaceDpEvent(parameter, 1), count=count)], wrong)
    for seen, unseen in ((truth.with_unit, truth.without), (truth.without, truth.with_unit)):
        order = (seen / unseen.clip(1e-300)).argsort()[::-1]
        named = unseen[order].cumsum() <= wrong
        assert seen[order][named].sum() <= most + 1e-9


# ---- Gaussian answers ------------------------------------------------------------------------------------------------------


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


# ---- published figures -----------------------------------------------------------------------------------------------------


DELTA = 1e-5


def sampled(rate, noise, count):
    return Spend(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count=count)


def said_by(accountant, spends, delta=DELTA):
    return next(one.epsilon for one in by_accountant(spends, delta) if one.accountant == accountant)


@pytest.mark.parametrize(
    ("spends", "epsilon", "renyi"),
    [
        ([sampled(0.01, 1.0, 1_000)], 1.828, 2.101),
        ([sampled(0.001, 0.8, 50_000)], 1.771, 2.067),
        ([Spend(LaplaceDpEvent(1.0), count=20)], 19.106, 19.314),
        ([Spend(DiscreteLaplaceDpEvent(1.0, 1), count=20)], 19.995, 19.995),
        ([Spend(LaplaceDpEvent(2.0)), sampled(0.01, 1.0, 1_000)], 2.244, 2.509),
        ([Spend(GaussianDpEvent(4.0), count=20)], 4.983, 5.378),
    ],
)
def test_loss_distributions_and_divergences_say_what_was_measured(spends, epsilon, renyi):
    assert total(spends, DELTA).accountant == "PLD"
    assert total(spends, DELTA).epsilon == pytest.approx(epsilon, rel=0.005)
    assert said_by("RDP", spends) == pytest.approx(renyi, rel=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "noise", "count"), [(0.1, 3.0, 200)])
def test_opacus_agrees_where_it_is_sound(rate, noise, count):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        accountants = pytest.importorskip("opacus.accountants")
        renyi, losses = accountants.RDPAccountant(), accountants.PRVAccountant()
        for accountant in (renyi, losses):
            accountant.history = [(noise, rate, count)]
        by_renyi, by_losses = renyi.get_epsilon(DELTA), losses.get_epsilon(DELTA)
    spends = [sampled(rate, noise, count)]
    assert said_by("RDP", spends) == pytest.approx(by_renyi, rel=0.01)
    assert said_by("RDP", spends) <= by_renyi * (1 + 1e-4)
    assert said_by("PLD", spends) == pytest.approx(by_losses, rel=0.01)
