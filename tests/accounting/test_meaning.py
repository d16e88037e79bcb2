"""What an epsilon means: the best attacker, and the price of shuffling."""

import math

import numpy as np
import pytest
from dp_accounting.dp_event import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
)
from scipy import special

from securetm.accounting.calculator.mechanisms import least_epsilon_shuffled
from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.accounting.tradeoff import best_true_positive_rate, true_positives
from securetm.contracts.events import SymmetricZCDpEvent
from securetm.errors import BadSetting

DELTA = 1e-5


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
