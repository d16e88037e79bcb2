"""What errors and guesses show of an epsilon: against closed forms, all outcomes of small games, many games, and extremes."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, nct, norm

from securetm.auditing.attack import Estimate, GroundTruth, Proportion, Score
from securetm.auditing.attacks import attack_called, gradient_inversion, many_runs
from securetm.auditing.attacks.many_runs import DIRECT, GAUSSIAN, HiddenCoins, SumClaim
from securetm.auditing.attacks.one_run import (
    best_guesses,
    curve_refutes,
    curve_shift,
    ideal_curve,
    ideal_scores,
    score_shift,
)
from securetm.auditing.judging import is_sound, measured
from securetm.auditing.parts.empirical_epsilon import (
    ErrorCounts,
    direct_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    log_ratio,
    never_wrong_one_run,
    one_run_chance,
    one_run_epsilon,
)
from securetm.auditing.plans import read_audit_plan
from securetm.auditing.record import REFUTED
from securetm.auditing.runner import audit, check_plan
from securetm.auditing.verdicts import clopper_pearson, judged_alone
from securetm.errors import Failed, Mistake

from .conftest import write_plan


def test_the_direct_bound_by_hand() -> None:
    assert log_ratio(0.8, 0.2, 0.0) == pytest.approx(math.log(4))
    assert log_ratio(0.8, 0.2, 0.4) == pytest.approx(math.log(2))
    assert log_ratio(0.1, 0.2, 0.0) == 0.0
    assert log_ratio(0.001, 0.0, 0.01) == 0.0
    assert log_ratio(0.5, 0.0, 0.01) == math.inf
    low, high = clopper_pearson(90, 100, 0.95)[0], clopper_pearson(5, 200, 0.95)[1]
    assert direct_epsilon(ErrorCounts(90, 100, 5, 200), 1e-5, 0.95) == pytest.approx(math.log((low - 1e-5) / high))


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


# ---- one run, by its trade-off curve and by scores -------------------------------------------------------------------


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


# ---- extremes: nothing tried, never wrong, no epsilon, a huge one, no delta ------------------------------------------


SURE = (0.0, 0.5, 0.95, 0.999, 1 - 1e-9, 1 - 2**-53)
EPSILONS = (None, 0.0, 1e-300, 1e-3, 1.0, 50.0, 1e6)
DELTAS = (0.0, 1e-300, 1e-5, 0.5, 1.0)
SHARES = st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)).map(sorted)
DOUBTS = st.sampled_from(SURE)


# ---- intervals of a share ------------------------------------------------------------------------------------------


@given(SHARES, DOUBTS)
@example([0, 0], 0.95)
@example([7, 7], 1 - 2**-53)
def test_an_interval_is_always_one_and_holds_what_was_found(hits_of: list[int], confidence: float) -> None:
    hits, of = hits_of
    low, high = clopper_pearson(hits, of, confidence)
    assert 0 <= low <= high <= 1
    assert (low == 0) >= (hits == 0)
    assert (high == 1) >= (hits == of)
    assert of == 0 or low <= hits / of + 1e-12
    assert of == 0 or hits / of <= high + 1e-12
    if of and confidence >= 0.5:
        assert low < 1
        assert high > 0


def test_a_small_doubt_is_not_lost_in_rounding() -> None:
    """1 - 10^-17 is 1: with the upper end read off 1 - tail, so little doubt would have had the width of none."""
    low, high = clopper_pearson(500, 1000, 1 - 2**-53)
    assert 0.36 < low < 0.38
    assert high == pytest.approx(1 - low)
    assert clopper_pearson(0, 10, 1 - 2**-53)[1] == pytest.approx(1 - (2**-54) ** 0.1)


# ---- many runs -----------------------------------------------------------------------------------------------------


def _judged(hits: int, present: int, false: int, absent: int, one: SumClaim, confidence: float) -> Score:
    """What the judge of the noised sums makes of so many errors."""
    scores = np.concatenate([np.arange(present) < hits, np.arange(absent) < false]).astype(float)
    truth = GroundTruth((), {}, {}, answer=HiddenCoins(np.arange(present + absent) < present, one), confidence=confidence)
    return many_runs.judge(many_runs.ThresholdTest(scores, 0.5, 0.5), truth)


ERRORS = st.tuples(*[st.integers(0, 300)] * 4).map(lambda n: (min(n[:2]), max(n[:2]), min(n[2:]), max(n[2:])))


@given(ERRORS, st.sampled_from(EPSILONS), st.sampled_from(DELTAS), st.booleans(), DOUBTS)
@example((0, 0, 0, 0), None, 1e-5, False, 0.999)
@example((300, 300, 0, 300), 0.0, 0.0, False, 0.999)
@example((0, 300, 300, 300), 0.0, 0.0, True, 0.999)
@example((300, 300, 300, 300), 1e6, 0.0, False, 0.999)
def test_many_runs_are_judged_by_numbers_whatever_came_of_them(
    errors: tuple[int, int, int, int], epsilon: float | None, delta: float, pure: bool, confidence: float
) -> None:
    told = _judged(*errors, SumClaim(epsilon, delta, pure), confidence)
    for name, worth in told.measures.items():
        assert is_sound(worth)
        found = measured(name, "u", worth, confidence)
        assert all(math.isfinite(end) for end in (found.low, found.high, found.ceiling))
        assert found.low <= found.ceiling
        by_chance = measured(name, "u", Estimate(0.0, 0.0, 0.0, found.ceiling), confidence)
        if judged_alone(found, by_chance, 1.0)[0] == REFUTED:
            assert found.low >= 1.0
            assert errors[0] * errors[3] > errors[2] * errors[1]  # more often where it was than where it was not
    assert all(math.isfinite(end) for drawn in told.curves for end in (*drawn.across, *drawn.up))


@pytest.mark.parametrize("name", [DIRECT, GAUSSIAN])
def test_both_ends_together_are_wrong_as_rarely_as_they_say(name: str) -> None:
    """Gaussian sums, one shift apart: which epsilon a threshold shows is known, and an interval may miss it."""
    rng, runs, at, mu, delta, confidence = np.random.default_rng(8), 1000, 1.0, 1.0, 1e-5, 0.5
    true, false = norm.sf(at - mu), norm.sf(at)
    truth = math.log((true - delta) / false) if name == DIRECT else gaussian_epsilon(mu, delta)
    missed = 0
    for hits, wrong in zip(rng.binomial(runs, true, 400), rng.binomial(runs, false, 400), strict=True):
        found = _judged(int(hits), runs, int(wrong), runs, SumClaim(None, delta), confidence).measures[name]
        assert isinstance(found, Estimate)
        missed += not found.low <= truth <= found.high
    assert missed <= binom.ppf(0.9999, 400, 1 - confidence)
    found = _judged(900, 1000, 100, 1000, SumClaim(None, delta), 0.99).measures[name]
    assert isinstance(found, Estimate)
    low, high = clopper_pearson(900, 1000, 0.995)[0], clopper_pearson(100, 1000, 0.995)[1]
    ends = {DIRECT: math.log((low - delta) / high), GAUSSIAN: gaussian_epsilon(norm.ppf(low) - norm.ppf(high), delta)}
    assert found.low == pytest.approx(ends[name])  # a quarter of the doubt for each of four ends


# ---- the Gaussian curve --------------------------------------------------------------------------------------------


def _exactly(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        first, second = (mpmath.ncdf(side * mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu) for side in (1, -1))
        return first - mpmath.e**epsilon * second


@pytest.mark.parametrize("mu", [1e-8, 1e-3, 0.3, 1.0, 10.0, 60.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.01, 1.0, 20.0, 900.0])
def test_delta_is_right_to_many_figures(mu: float, epsilon: float) -> None:
    assert gaussian_delta(mu, epsilon) == pytest.approx(float(_exactly(mu, epsilon)), rel=1e-6, abs=1e-290)


@given(st.floats(0, 1e300), st.floats(0, 1e300), st.floats(0, 1))
@example(0.0, 0.0, 0.0)
@example(1e-310, 1.0, 0.0)
@example(1e300, 1e300, 1.0)
def test_the_gaussian_curve_has_a_number_everywhere(mu: float, epsilon: float, delta: float) -> None:
    assert 0 <= gaussian_delta(mu, epsilon) <= 1
    assert 0 <= gaussian_epsilon(mu, delta) <= 1000
    assert 0 <= gaussian_mu(epsilon, delta) <= 100


# ---- one run -------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 400), min_size=3, max_size=3).map(sorted),
    st.sampled_from([0.0, 1e-300, 1e-9, 1.0, 37.0, 40.0, 800.0, 1e308, math.inf]),
    st.sampled_from(DELTAS),
)
@example([1, 1, 1], 40.0, 0.0)
def test_the_chance_of_guesses_is_one_whatever_epsilon(counts: list[int], epsilon: float, delta: float) -> None:
    correct, guesses, canaries = counts
    assert 0 <= one_run_chance(canaries, guesses, correct, epsilon, delta) <= 1


@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5, 1e-3, 0.1])
@pytest.mark.parametrize("canaries", [1, 7, 60, 250])
def test_more_right_guesses_show_more_so_the_ceiling_is_that_of_all(canaries: int, delta: float) -> None:
    for confidence in (0.95, 0.9998):
        never_wrong = [
            one_run_epsilon(canaries, made, made, delta, confidence) for made in range(0, canaries + 1, max(1, canaries // 25))
        ]
        assert all(fewer <= more + 1e-9 for fewer, more in pairwise(never_wrong))
        assert max(never_wrong) <= never_wrong_one_run(canaries, 0, delta, confidence) + 1e-9


# ---- verdicts ------------------------------------------------------------------------------------------------------


UNSOUND: tuple[Estimate | Proportion, ...] = (
    Estimate(0.5, math.nan, 1.0, 1.0),
    Estimate(0.5, 0.0, math.nan, 1.0),
    Estimate(0.5, 0.0, 1.0, math.nan),
    Estimate(math.inf, math.inf, math.inf, math.inf),
    Estimate(0.5, 0.6, 1.0, 1.0),
    Estimate(0.5, 0.0, 0.4, 1.0),
    Estimate(math.nan, 1.0, 0.0, 1.0),
    Proportion(3, 2),
    Proportion(-1, 2),
    Proportion(1, 2, 0.0),
)


def test_what_is_no_measure_is_not_judged(tmp_path: Path, documents_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(map(is_sound, UNSOUND))
    honest = gradient_inversion.GRADIENT_INVERSION
    wrong = dataclasses.replace(honest, judge=lambda guesses, truth: Score(dict.fromkeys(honest.measures, Proportion(3, 2))))
    monkeypatch.setattr(gradient_inversion, "GRADIENT_INVERSION", wrong)
    with pytest.raises(Failed, match="documents recovered exactly"):
        audit(write_plan(tmp_path / "wrong.toml", documents_file, profiles=["open"], batch=2))


def test_a_claim_about_words_is_refused_before_anything_is_made() -> None:
    plan = read_audit_plan("empirical_epsilon")
    trial = next(one for one in plan.trials if one.attack == "one_run_epsilon")
    assert attack_called("one_run_epsilon").allowed is not None
    check_plan(dataclasses.replace(plan, trials=(trial,)))
    words = dataclasses.replace(trial, profiles=("open", "iftm"))
    with pytest.raises(Mistake, match="a claim about a word says nothing"):
        check_plan(dataclasses.replace(plan, trials=(words,)))
