"""Composition: which accountant is used, what a failure costs, what fits a budget, what is found for one, and what it means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.dp_event import (
    DiscreteLaplaceDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
)
from scipy import special

from securetm.accounting.bounds import Bound, by_both, by_losses
from securetm.accounting.calculator.mechanisms import least_epsilon_shuffled
from securetm.accounting.calibration import PRECISION, BudgetTooSmall, noise_for
from securetm.accounting.composition import affordable, by_accountant, failure_cost, quick_epsilon, total, within
from securetm.accounting.losses import rounding_of
from securetm.accounting.renyi import ORDERS, epsilons_at, renyi_curve
from securetm.accounting.spends import Spend
from securetm.accounting.tradeoff import best_true_positive_rate, true_positives
from securetm.contracts.events import SymmetricZCDpEvent
from securetm.errors import BadSetting

from .exact import delta_at

DELTA = 1e-5
STEP = Spend(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)))
GENTLE = Spend(PoissonSampledDpEvent(0.05, GaussianDpEvent(4.0)))  # its losses do not reach far: quick to compose often


def accountants(spends, delta=DELTA):
    return {total.accountant for total in by_accountant(spends, delta)}


def test_each_kind_of_event_is_bounded_by_whoever_can():
    assert accountants([STEP]) == {"PLD", "RDP"}
    assert accountants([Spend(LaplaceDpEvent(1.0))]) == {"PLD", "RDP", "pure"}
    assert accountants([Spend(RandomizedResponseDpEvent(0.5, 3))]) == {"PLD", "RDP", "pure"}
    assert accountants([Spend(SymmetricZCDpEvent(0.1, 0.0))]) == {"RDP"}
    assert accountants([STEP, Spend(SymmetricZCDpEvent(0.1, 0.0))]) == {"RDP", "PLD + RDP"}


def test_nothing_spent_is_nothing_lost_and_the_bare_answer_is_everything():
    assert total([], DELTA).epsilon == total([], 0.0).epsilon == 0.0
    assert total([Spend(NoOpDpEvent()), Spend(STEP.event, count=0)], 0.0).epsilon == 0.0
    assert total([STEP, Spend(NonPrivateDpEvent())], DELTA).epsilon == math.inf
    assert delta_at([Spend(PoissonSampledDpEvent(0.5, NonPrivateDpEvent()))], 9.0) == 1.0


def test_what_rounding_may_hide_is_paid_from_delta():
    leaves = ((GENTLE.event, 100),)
    bound, hidden = by_losses(leaves), rounding_of(leaves)
    assert bound.epsilon(hidden) == math.inf
    assert bound.delta(bound.epsilon(3 * hidden)) <= 3 * hidden * (1 + 1e-6)


def test_without_delta_pure_epsilons_add_up_and_others_are_infinite():
    spends = [
        Spend(LaplaceDpEvent(2.0), count=3),
        Spend(DiscreteLaplaceDpEvent(0.25, 2)),
        Spend(RandomizedResponseDpEvent(0.5, 2)),
    ]
    assert total(spends, 0.0).epsilon == pytest.approx(1.5 + 0.5 + math.log(3))
    assert total(spends, 0.0).accountant == "pure"
    sampled = [Spend(PoissonSampledDpEvent(0.1, LaplaceDpEvent(1.0)))]
    assert total(sampled, 0.0).epsilon == pytest.approx(math.log1p(0.1 * math.expm1(1)))
    assert total([STEP], 0.0).epsilon == math.inf


def test_a_delta_where_the_transforms_are_only_rounding_is_left_to_the_divergences():
    spends = [Spend(STEP.event, count=1_000)]
    assert total(spends, 1e-13).accountant == "RDP"
    assert math.isfinite(total(spends, 1e-30).epsilon)


def test_the_best_of_a_mixture_is_no_worse_than_either_way():
    spends = [Spend(LaplaceDpEvent(0.25)), Spend(SymmetricZCDpEvent(0.02, 0.0))]
    both = {found.accountant: found.epsilon for found in by_accountant(spends, DELTA)}
    assert total(spends, DELTA).epsilon == min(both.values())
    separately = total(spends[:1], DELTA / 2).epsilon + total(spends[1:], DELTA / 2).epsilon
    assert both["PLD + RDP"] <= separately * (1 + 1e-12)


def test_a_failure_probability_is_taken_from_delta_with_what_its_distance_costs():
    bare, failure_probability = [Spend(STEP.event, count=1_000)], 1e-10
    spends = [Spend(STEP.event, failure_probability, 1_000)]
    found = total(spends, DELTA).epsilon
    left = DELTA - 1_000 * failure_probability * (1 + math.exp(found))
    assert found >= total(bare, left).epsilon
    assert found == pytest.approx(total(bare, left).epsilon, rel=1e-5, abs=1e-5)
    assert delta_at(spends, 2.0) == pytest.approx(delta_at(bare, 2.0) + 1e-7 * (1 + math.exp(2.0)))


@pytest.mark.parametrize("failure_probability", [0.0, 1e-12, 1e-9, 1e-8])
def test_a_budget_holds_exactly_where_the_total_says_so(failure_probability):
    """The printed total may be a step above the least fixed point: a budget between the two is exceeded."""
    spends = [Spend(STEP.event, failure_probability, 100)]
    found = total(spends, DELTA).epsilon
    for off in (-1e-3, -3e-6, -1.5e-6, -7e-7, -1e-7, 0.0, 1e-7, 1.5e-6, 1e-3):
        assert within(spends, found * (1 + off), DELTA) is (off >= 0), off


def test_slack_beyond_delta_leaves_nothing():
    assert total([Spend(STEP.event, 1e-5)], DELTA).epsilon == math.inf
    assert total([Spend(LaplaceDpEvent(1.0), 1e-9)], 0.0).epsilon == math.inf
    assert affordable([], Spend(STEP.event, 1e-5), 3.0, DELTA, 10) == 0
    assert failure_cost(1e-300, 1e6) == math.inf


def test_a_slack_whose_cost_grows_faster_than_epsilon_ends():
    assert total([Spend(LaplaceDpEvent(0.02), 1e-16)], DELTA).epsilon in (math.inf, pytest.approx(50.0, rel=0.1))


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ((), GENTLE),
        ((Spend(LaplaceDpEvent(2.0)),), GENTLE),
        ((Spend(GENTLE.event, count=500),), Spend(PoissonSampledDpEvent(0.01, SymmetricZCDpEvent(0.4, 0.01)), 1e-10)),
    ],
)
def test_exactly_what_is_affordable_fits(before, more):
    most = affordable(before, more, 2.0, DELTA, 100_000)
    assert 0 < most < 100_000
    assert total([*before, Spend(more.event, more.failure_probability, most)], DELTA).epsilon <= 2.0
    assert total([*before, Spend(more.event, more.failure_probability, most + 1)], DELTA).epsilon > 2.0
    assert affordable(before, more, 2.0, DELTA, most // 2) == most // 2


def test_what_does_not_fit_is_not_affordable():
    assert affordable([Spend(LaplaceDpEvent(0.4))], STEP, 2.0, DELTA, 10) == 0
    assert affordable([], Spend(NonPrivateDpEvent()), 2.0, DELTA, 10) == 0
    assert affordable([], STEP, 2.0, DELTA, 0) == 0
    assert affordable([], Spend(NoOpDpEvent()), 0.0, 0.0, 1_000) == 1_000
    assert affordable([], Spend(LaplaceDpEvent(2.0)), 2.0, 0.0, 100) == 4


def test_numbers_that_are_no_budget_are_refused():
    for bad in (-1e-9, 1.0, math.nan, "0.1"):
        with pytest.raises(BadSetting, match="delta"):
            total([STEP], bad)
        with pytest.raises(BadSetting, match="delta"):
            affordable([], STEP, 1.0, bad, 1)
    for epsilon, most in ((-1.0, 3), (math.nan, 3), (1.0, -1), (1.0, 2.5)):
        with pytest.raises(BadSetting):
            affordable([], STEP, epsilon, DELTA, most)


@pytest.mark.parametrize(
    "spends",
    [
        [Spend(PoissonSampledDpEvent(0.01, GaussianDpEvent(1e-3)), count=1_000)],
        [Spend(GaussianDpEvent(1e-6))],
        [Spend(LaplaceDpEvent(1e-5)), STEP],
        [Spend(PoissonSampledDpEvent(0.5, SymmetricZCDpEvent(1e9, 1e9)), count=10**6)],
        [Spend(LaplaceDpEvent(1e5), count=10**8)],
        [Spend(DiscreteLaplaceDpEvent(700.0, 10**6))],
    ],
)
def test_extreme_settings_end_in_a_sound_figure_of_a_named_accountant(spends):
    found = by_accountant(spends, DELTA)
    assert found[0].accountant in {"RDP", "pure", "PLD"}
    assert found[0].epsilon > 0
    assert all(not math.isnan(one.epsilon) for one in found)


def test_the_quick_figure_is_never_below_the_best():
    for spends in ([STEP], [Spend(LaplaceDpEvent(1.0), count=7)], [STEP, Spend(SymmetricZCDpEvent(0.3, 0.1), 1e-12)]):
        assert quick_epsilon(spends, DELTA) >= total(spends, DELTA).epsilon
        assert within(spends, total(spends, DELTA).epsilon, DELTA)


def test_the_curve_of_divergences_adds_up_and_turns_into_epsilon():
    one, many = renyi_curve([STEP]), renyi_curve([Spend(STEP.event, count=40), Spend(GaussianDpEvent(2.0))])
    assert many == pytest.approx(40 * one + ORDERS / 8)
    assert renyi_curve([Spend(SymmetricZCDpEvent(0.1, 0.02))]) == pytest.approx(0.02 + 0.1 * ORDERS)
    assert renyi_curve([Spend(RandomizedResponseDpEvent(0.5, 2))], [2.0]) == pytest.approx(math.log(7 / 3))
    least = epsilons_at(ORDERS, many, DELTA).min()
    assert least == pytest.approx(quick_epsilon([Spend(STEP.event, count=40), Spend(GaussianDpEvent(2.0))], DELTA))
    assert epsilons_at(np.array([2.0, 2.0]), np.array([0.0, 0.1]), 0.0).tolist() == [0.0, math.inf]


def test_divergences_grow_with_the_order_and_never_fall_below_zero():
    events = [
        PoissonSampledDpEvent(1e-4, GaussianDpEvent(5.0)),
        PoissonSampledDpEvent(0.3, GaussianDpEvent(0.04)),
        PoissonSampledDpEvent(0.01, SymmetricZCDpEvent(0.1, 0.02)),
        PoissonSampledDpEvent(0.2, LaplaceDpEvent(0.5)),
        DiscreteLaplaceDpEvent(0.5, 4),
        DiscreteLaplaceDpEvent(1e-6, 1),
        LaplaceDpEvent(1e4),
    ]
    for event in events:
        curve = renyi_curve([Spend(event)])
        assert (curve >= 0).all(), event
        assert (curve[1:] >= curve[:-1] * (1 - 1e-9) - 1e-12).all(), event


def test_what_two_accountants_share_of_delta_is_not_spent_twice() -> None:
    """One of them needs it all, and the other leaves it the most that is tried."""
    free, greedy = (Bound("", epsilon, lambda _: 0.0) for epsilon in (lambda _: 0.0, lambda delta: 1 / delta))
    assert by_both(free, greedy).epsilon(0.1) == pytest.approx(1 / (0.95 * 0.1))
    assert by_both(greedy, free).epsilon(0.1) == pytest.approx(1 / (0.95 * 0.1))


# ---- the other way round ---------------------------------------------------------------------------------------------------


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


# ---- what an epsilon means -------------------------------------------------------------------------------------------------


def gaussian_power(noise, wrong):
    return float(special.ndtr(special.ndtri(wrong) + 1 / noise))


@pytest.mark.parametrize(("noise", "wrong"), [(0.5, 0.001), (1.0, 0.01), (5.0, 0.3)])
def test_the_best_attack_on_a_gaussian_is_the_likelihood_ratio(noise, wrong):
    found = best_true_positive_rate([Spend(GaussianDpEvent(noise))], wrong)
    assert gaussian_power(noise, wrong) - 1e-9 <= found <= gaussian_power(noise, wrong) * 1.01 + 1e-4


def test_the_best_attack_on_one_laplace_answer_is_its_pure_epsilon():
    assert best_true_positive_rate([Spend(LaplaceDpEvent(1.0))], 0.01) == pytest.approx(math.e * 0.01, rel=1e-3)


def test_divergences_alone_bound_an_attacker_too_and_slack_helps_him():
    spends = [Spend(SymmetricZCDpEvent(0.5, 0.0))]
    assert gaussian_power(1.0, 0.01) <= best_true_positive_rate(spends) < 0.5
    assert best_true_positive_rate([Spend(SymmetricZCDpEvent(0.5, 0.0), 1e-3)]) > best_true_positive_rate(spends) + 1e-3


def test_an_attacker_gains_nothing_from_nothing_and_everything_from_the_bare_answer():
    assert best_true_positive_rate([], 0.01) == pytest.approx(0.01)
    assert best_true_positive_rate([Spend(NonPrivateDpEvent())], 0.01) == 1.0
    assert true_positives(0.01, 0.0, 0.0) == 0.01
    assert true_positives(0.5, 3.0, 0.0) == pytest.approx(1 - math.exp(-3) / 2)


@pytest.mark.parametrize("bad", [0.0, 1.1, math.nan])
def test_a_share_of_false_positives_that_is_none_is_refused(bad):
    with pytest.raises(BadSetting, match="false positives"):
        best_true_positive_rate([Spend(GaussianDpEvent(1.0))], bad)


def test_shuffling_costs_more_than_poisson_sampling_and_less_with_more_noise():
    bounds = [least_epsilon_shuffled(1_000, noise, DELTA) for noise in (0.4, 0.6, 1.0, 2.0)]
    assert bounds == sorted(bounds, reverse=True)
    sampled = [Spend(PoissonSampledDpEvent(1 / 1_000, GaussianDpEvent(0.6)), count=1_000)]
    assert bounds[1] > total(sampled, DELTA).epsilon


def test_one_batch_an_epoch_is_the_gaussian_itself_so_the_bound_is_no_larger():
    exact = total([Spend(GaussianDpEvent(1.0))], DELTA).epsilon
    assert exact * 0.99 <= least_epsilon_shuffled(1, 1.0, DELTA) <= exact


def test_the_bound_for_shuffling_is_met_by_a_simulated_attacker():
    batches, noise, delta, rng = 20, 0.5, 1e-3, np.random.default_rng(3)
    draws = rng.normal(0, noise, (30_000, batches))
    mine = np.zeros(batches)
    mine[0] = 1
    epsilon = least_epsilon_shuffled(batches, noise, delta)
    most = max(
        float(np.log((((draws + 2 * mine).max(axis=1) >= passing).mean() - delta) / max(1e-9, without)))
        for passing in np.linspace(0.5, 2, 16)
        if (without := ((draws + mine).max(axis=1) >= passing).mean()) > 1e-3
    )
    assert epsilon >= most - 0.1


@pytest.mark.parametrize(("batches", "noise"), [(0, 1.0), (1.5, 1.0), (10, 0.0)])
def test_nonsense_about_shuffling_is_refused(batches, noise):
    with pytest.raises(BadSetting):
        least_epsilon_shuffled(batches, noise, DELTA)
