"""Bounds by which one run can refute an epsilon: by hand, against all outcomes of small games, and by many games."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, nct, norm

from securetm.auditing.attacks.one_run import (
    best_guesses,
    curve_refutes,
    curve_shift,
    ideal_curve,
    ideal_scores,
    score_shift,
)
from securetm.auditing.parts.empirical_epsilon import gaussian_epsilon, gaussian_mu

CLAIM = gaussian_mu(4.0, 1e-5)


def test_one_canary_is_the_curve_itself() -> None:
    """The best guess about one coin is right with chance Phi(mu / 2), and no more often: the bound inverts exactly that."""
    for mu in (0.0, 0.4, 1.0, 3.0):
        right = float(norm.cdf(mu / 2))
        assert not curve_refutes(1, 1, 1, mu, right - 1e-9)
        assert curve_refutes(1, 1, 1, mu, right + 1e-9)


def test_independent_canaries_stay_below_the_bound_whatever_number_is_right() -> None:
    """Canaries that do not meet: the number of right guesses is binomial, and the bound is at least its tail."""
    for canaries in (2, 5, 30):
        for mu in (0.0, 0.7, 2.0):
            right = float(norm.cdf(mu / 2))
            for correct in range(1, canaries + 1):
                tail = float(binom.sf(correct - 1, canaries, right))
                assert not curve_refutes(canaries, canaries, correct, mu, tail * (1 - 1e-9))


def test_an_ideal_attacker_of_1000_canaries_sees_half_the_noise_by_either_bound_and_not_by_the_older_one() -> None:
    guesses = best_guesses(1000, 4.0, 1e-5, 0.975)
    assert 100 <= guesses <= 300
    half = 2 * CLAIM
    assert gaussian_epsilon(ideal_curve(1000, guesses, half, 0.975), 1e-5) > 4.5
    assert gaussian_epsilon(ideal_scores(1000, half, 0.975), 1e-5) > 8.0
    assert gaussian_epsilon(ideal_curve(1000, guesses, CLAIM, 0.975), 1e-5) < 4.0
    assert gaussian_epsilon(ideal_scores(1000, CLAIM, 0.975), 1e-5) < 4.0
    assert best_guesses(1, 4.0, 1e-5, 0.975) == 0


# ---- scores --------------------------------------------------------------------------------------------------------


def test_the_bound_by_scores_is_the_noncentral_t_test() -> None:
    rng = np.random.default_rng(1)
    coins = np.arange(60) < 25
    scores = rng.standard_normal(60) * 3 + 5 * coins + 7
    shift, low, high = score_shift(scores, coins, 0.95)
    assert low < shift < high
    root = math.sqrt(25 * 35 / 60)
    for end, chance in ((low, 0.95), (high, 0.05)):
        assert nct.cdf(shift * root, 58, end * root) == pytest.approx(chance, abs=1e-6)
    moved = score_shift(scores * 1e-6 - 3, coins, 0.95)
    assert moved == pytest.approx((shift, low, high), rel=1e-6)  # neither place nor size of scores matter


# ---- how often they are wrong ---------------------------------------------------------------------------------------


def _played(mu: float, canaries: int, guesses: int, rng: np.random.Generator) -> tuple[float, float]:
    """Both bounds of one run by the best attacker."""
    coins = rng.integers(0, 2, canaries).astype(bool)
    scores = rng.standard_normal(canaries) + mu * coins
    order, half = np.argsort(scores), guesses // 2
    right = int(coins[order[-half:]].sum() + (~coins[order[:half]]).sum())
    return curve_shift(canaries, guesses, right, 0.95), score_shift(scores, coins, 0.95)[1]


def _wrong(mu: float, canaries: int, guesses: int, runs: int) -> tuple[int, int]:
    rng = np.random.default_rng(11)
    found = np.array([_played(mu, canaries, guesses, rng) for _ in range(runs)])
    return int((found[:, 0] > mu).sum()), int((found[:, 1] > mu).sum())


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.0, CLAIM, 2.0])
@pytest.mark.parametrize(("canaries", "guesses"), [(20, 20), (100, 40), (1000, 150)])
def test_honest_noise_is_refuted_in_at_most_one_run_of_twenty(mu: float, canaries: int, guesses: int) -> None:
    """Very often: a bound that is wrong in one run of twenty exceeds this limit once in 10^9."""
    runs = 1500
    assert max(_wrong(mu, canaries, guesses, runs)) <= binom.isf(1e-9, runs, 0.05)


@pytest.mark.slow
def test_half_the_noise_is_nearly_always_refuted_with_1000_canaries() -> None:
    rng = np.random.default_rng(12)
    found = np.array([_played(2 * CLAIM, 1000, 150, rng) for _ in range(400)])
    by_curve, by_scores = (found > CLAIM).mean(axis=0)
    assert by_curve > 0.9
    assert by_scores == 1.0
