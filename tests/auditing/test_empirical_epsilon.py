"""What errors say of an epsilon: against closed forms, by counting all outcomes, and by how often a bound exceeds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from securetm.auditing.parts.empirical_epsilon import (
    ErrorCounts,
    direct_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_shift,
    ideal_correct,
    log_ratio,
    one_run_chance,
    one_run_epsilon,
)
from securetm.auditing.verdicts import clopper_pearson


def _randomised_response(epsilon: float, runs: int, rng: np.random.Generator) -> ErrorCounts:
    """A test that is right with chance e^epsilon / (1 + e^epsilon): nothing under this epsilon shows more."""
    right = 1 / (1 + math.exp(-epsilon))
    return ErrorCounts(int(rng.binomial(runs, right)), runs, int(rng.binomial(runs, 1 - right)), runs)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_the_direct_bound_exceeds_the_truth_as_rarely_as_it_says(epsilon: float) -> None:
    rng = np.random.default_rng(1)
    wrong = sum(direct_epsilon(_randomised_response(epsilon, 500, rng), 0.0, 0.9) > epsilon for _ in range(1000))
    assert wrong <= binom.ppf(0.9999, 1000, 0.1)


def test_the_direct_bound_by_hand() -> None:
    assert log_ratio(0.8, 0.2, 0.0) == pytest.approx(math.log(4))
    assert log_ratio(0.8, 0.2, 0.4) == pytest.approx(math.log(2))
    assert log_ratio(0.1, 0.2, 0.0) == 0.0
    assert log_ratio(0.001, 0.0, 0.01) == 0.0
    assert log_ratio(0.5, 0.0, 0.01) == math.inf
    low, high = clopper_pearson(90, 100, 0.95)[0], clopper_pearson(5, 200, 0.95)[1]
    assert direct_epsilon(ErrorCounts(90, 100, 5, 200), 1e-5, 0.95) == pytest.approx(math.log((low - 1e-5) / high))


@pytest.mark.parametrize(("hits", "of"), [(0, 10), (10, 10), (3, 10), (99_990, 100_000), (7, 100_000)])
def test_the_ends_of_both_shares_are_those_of_the_exact_interval(hits: int, of: int) -> None:
    low, high = clopper_pearson(hits, of, 0.999)
    assert ErrorCounts(hits, of, hits, of).surely(0.999) == (pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9))
    assert ErrorCounts(hits, of, hits, of).at_best(0.999) == (pytest.approx(high, rel=1e-9), pytest.approx(low, rel=1e-9))


def test_the_gaussian_conversion_is_the_known_one() -> None:
    """Noise of deviation 1 on a sum that moves by 1: epsilon 4.377 at 1e-5 (what loss distributions give, too)."""
    assert gaussian_epsilon(1.0, 1e-5) == pytest.approx(4.37718, abs=1e-4)
    assert gaussian_delta(1.0, 0.0) == pytest.approx(2 * norm.cdf(0.5) - 1)  # total variation
    for epsilon in (0.1, 1.0, 8.0):
        assert gaussian_epsilon(gaussian_mu(epsilon, 1e-6), 1e-6) == pytest.approx(epsilon, rel=1e-6)
    assert gaussian_epsilon(0.0, 1e-5) == 0.0


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.0])
def test_the_gaussian_bound_exceeds_the_truth_as_rarely_as_it_says(mu: float) -> None:
    rng, runs, at = np.random.default_rng(3), 400, 0.7
    pairs = zip(rng.binomial(runs, norm.sf(at - mu), 1000), rng.binomial(runs, norm.sf(at), 1000), strict=True)
    wrong = sum(gaussian_shift(ErrorCounts(int(hits), runs, int(false), runs), 0.9) > mu for hits, false in pairs)
    assert wrong <= binom.ppf(0.9999, 1000, 0.1)


# ---- one run -------------------------------------------------------------------------------------------------------


def test_the_chance_of_right_guesses_by_hand() -> None:
    assert one_run_chance(2, 2, 2, 0.0, 0.0) == pytest.approx(1 / 4)
    assert one_run_chance(2, 2, 2, math.log(3), 0.0) == pytest.approx(9 / 16)
    assert one_run_chance(1, 1, 1, 0.0, 0.1) == pytest.approx(0.5 + 2 * 0.1 * 0.5)
    assert one_run_chance(5, 1, 1, math.log(3), 0.01) == pytest.approx(0.75 + 2 * 5 * 0.01 * 0.25)
    # two guesses, one right, q = 3/4: the tail is 15/16; what lies below it is 1/16, one step away
    assert one_run_chance(2, 2, 1, math.log(3), 0.01) == pytest.approx(15 / 16 + 2 * 2 * 0.01 / 16)
    # three guesses, two right, q = 1/2: below the tail 3/8 lie one step away, 4/8 two: 3/8 is the steeper
    assert one_run_chance(3, 3, 2, 0.0, 0.01) == pytest.approx(1 / 2 + 2 * 3 * 0.01 * 3 / 8)
    assert one_run_chance(4, 4, 0, 1.0, 0.1) == 1.0


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("canaries", [1, 5, 40])
def test_one_run_of_randomised_response_is_wrong_as_rarely_as_it_says(canaries: int, epsilon: float) -> None:
    """All outcomes are counted: the chance of a bound above the truth, exactly."""
    right, correct = 1 / (1 + math.exp(-epsilon)), np.arange(canaries + 1)
    bounds = np.array([one_run_epsilon(canaries, canaries, int(c), 0.0, 0.9) for c in correct])
    assert binom.pmf(correct[bounds > epsilon + 1e-9], canaries, right).sum() <= 0.1


@pytest.mark.parametrize("delta", [0.01, 0.2])
@pytest.mark.parametrize("canaries", [1, 3, 8])
def test_a_mechanism_that_shows_each_canary_with_chance_delta_stays_below(canaries: int, delta: float) -> None:
    """(0, delta): what is shown is guessed right, the rest by a coin."""
    for correct in range(canaries + 1):
        truth = binom.sf(correct - 1, canaries, (1 + delta) / 2)
        assert truth <= one_run_chance(canaries, canaries, correct, 0.0, delta) + 1e-12


def test_the_ideal_attacker_of_one_run_is_one_that_is_really_played() -> None:
    rng, canaries, guesses, mu = np.random.default_rng(5), 400, 80, 1.5
    found = []
    for _ in range(300):
        coins = rng.integers(0, 2, canaries).astype(bool)
        order = np.argsort(rng.standard_normal(canaries) + mu * coins)
        found.append(coins[order[-guesses // 2 :]].sum() + (~coins[order[: guesses // 2]]).sum())
    assert ideal_correct(canaries, guesses, mu) == pytest.approx(np.mean(found), abs=1.0)
