"""How much epsilon one noised sum really shows: made very often, with one known document in it or without.

It tries the noise itself and nothing of a whole run: no sampling, no rounds, and no model that forgets. One run cannot tell
half the noise from all of it; very many sums can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array
from securetm.leakage.adversary_view import AdversaryView
from securetm.leakage.attack import Attack, Challenge, ClaimedEpsilon, Effort, Estimate, GroundTruth, Proportion, Score
from securetm.leakage.illustrations import Curve
from securetm.leakage.intervals import of_each
from securetm.leakage.parts.canary_sums import CanarySums, CanarySumSource, SumClaim
from securetm.leakage.parts.empirical_epsilon import (
    ErrorCounts,
    best_threshold,
    direct_epsilon,
    errors_at,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_shift,
    ideal_direct,
    ideal_gaussian,
    ideal_pure,
    log_ratio,
    shift,
)
from securetm.leakage.reading import REQUEST

RUNS = "runs"
DIRECT = "share of one sum's epsilon that is shown, nothing assumed"
GAUSSIAN = "share of one sum's epsilon that is shown, if the noise is Gaussian"
NOBODY = 1.0  # the epsilon that is compared with where a profile claims none
NOTHING = 1e-6  # and where one claims that nothing is shown, a share of which would be infinite
_CHOSEN_AT = 0.999  # confidence for which a test is made sharpest; it is then judged at the plan's own
_ACROSS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True)
class ThresholdTest:
    """Says of a sum that the canary is in it, from this score on."""

    scores: Array
    direct: float  # the threshold for each of the two bounds
    gaussian: float


@dataclass(frozen=True)
class HiddenCoins:
    """The judge's: in which sums the canary was, and what one of them claims."""

    coins: Array
    one: SumClaim


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Run by the judge: sums with and without a label. Their noise is the operating system's, only the coins are repeatable."""
    assert truth.public is not None
    one, half = CanarySumSource.of(truth.public, truth.vocabulary), max(effort[RUNS] // 4, 1)
    coins = rng.integers(0, 2, 2 * half).astype(bool)
    unknown = np.empty((2 * half, one.width), dtype=np.float32)
    unknown[coins], unknown[~coins] = (one.opened(int((coins == there).sum()), present=there) for there in (True, False))
    question = CanarySums(one.opened(half, present=True), one.opened(half, present=False), unknown)
    return Challenge(question, HiddenCoins(coins, one.claimed))


def attack(view: AdversaryView, effort: Effort) -> ThresholdTest:  # noqa: ARG001 - how many sums there are is the question's
    """Run by whoever sees noised sums, or a model that is made of them: the direction in which the canary moves a sum."""
    sums: CanarySums = view.question
    moved = (sums.present.mean(axis=0) - sums.absent.mean(axis=0)).astype(np.float64)
    present, absent = sums.present @ moved, sums.absent @ moved
    delta = view.public.profile.budget.delta if view.public.profile.budget else 0.0
    direct = best_threshold(present, absent, lambda errors: direct_epsilon(errors, delta, _CHOSEN_AT))
    gaussian = best_threshold(present, absent, lambda errors: gaussian_shift(errors, _CHOSEN_AT))
    return ThresholdTest(sums.unknown @ moved, direct, gaussian)


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(guess: ThresholdTest, truth: GroundTruth) -> Score:
    """Run by the judge: only sums that had no label count, so nothing that was chosen is judged by what it was chosen on."""
    secret: HiddenCoins = truth.answer
    one, present, absent = secret.one, guess.scores[secret.coins], guess.scores[~secret.coins]
    direct, gaussian = (errors_at(threshold, present, absent) for threshold in (guess.direct, guess.gaussian))
    shown = {DIRECT: _by_ratio(direct, one.delta, truth.confidence)}
    if not one.pure:
        shown[GAUSSIAN] = _by_shift(gaussian, one.delta, truth.confidence)
    untried = {} if GAUSSIAN in shown else {GAUSSIAN: Proportion(0, 0)}
    measures = {name: _share(found, one.epsilon) for name, found in shown.items()}
    runs = min(len(present), len(absent))
    return Score({**measures, **untried}, curves=_curves(shown, one, runs, truth.confidence))


def _by_ratio(errors: ErrorCounts, delta: float, confidence: float) -> Estimate:
    """Each end from an interval of either share, at half the doubt: so both ends together hold at the whole of it."""
    confidence = of_each(confidence)
    most = direct_epsilon(ErrorCounts(errors.present, errors.present, 0, errors.absent), delta, confidence)
    middle, high = log_ratio(*errors.smoothed(), delta), log_ratio(*errors.at_best(confidence), delta)
    return _bounded(middle, direct_epsilon(errors, delta, confidence), high, most)


def _by_shift(errors: ErrorCounts, delta: float, confidence: float) -> Estimate:
    """The same, if the noise is Gaussian."""
    confidence = of_each(confidence)
    most = gaussian_shift(ErrorCounts(errors.present, errors.present, 0, errors.absent), confidence)
    high = min(shift(*errors.at_best(confidence)), most)
    mus = (shift(*errors.smoothed()), gaussian_shift(errors, confidence), high, most)
    return _bounded(*(gaussian_epsilon(mu, delta) for mu in mus))


def _bounded(value: float, low: float, high: float, most: float) -> Estimate:
    """So many sums show no more than `most`, even where the attacker is never wrong: an upper end beyond it is not known."""
    return Estimate(min(max(value, low), most), low, max(min(high, most), low), most)


def _share(found: Estimate, epsilon: float | None) -> Estimate:
    claimed = NOBODY if epsilon is None else max(epsilon, NOTHING)
    return Estimate(found.value / claimed, found.low / claimed, found.high / claimed, found.ceiling / claimed)


def _curves(shown: dict[str, Estimate], one: SumClaim, runs: int, confidence: float) -> tuple[Curve, ...]:
    """Claimed epsilon across; what was surely shown, and what an ideal attacker would show of honest noise, up."""
    if one.epsilon is None:
        return ()
    points = tuple(sorted({*_ACROSS, one.epsilon}))
    return tuple(
        curve
        for name, found in shown.items()
        for curve in (
            Curve(
                "epsilon",
                f"an ideal attacker, so many sums, {_short(name)}, on average",
                points,
                _ideal(name, points, one, runs, of_each(confidence)),
            ),
            Curve("epsilon", f"shown, {_short(name)}", (one.epsilon,), (found.low,)),
        )
    )


def _ideal(name: str, points: tuple[float, ...], one: SumClaim, runs: int, confidence: float) -> tuple[float, ...]:
    if one.pure:
        return tuple(ideal_pure(runs, epsilon, one.delta, confidence) for epsilon in points)
    best = ideal_direct if name == DIRECT else ideal_gaussian
    return tuple(best(runs, gaussian_mu(epsilon, one.delta), one.delta, confidence) for epsilon in points)


def _short(name: str) -> str:
    return name.split(", ")[1]


def allowed(measure: str, claimed: ClaimedEpsilon) -> float:  # noqa: ARG001 - the claim of one sum is the mechanism's, not the run's
    """All of what one sum claims, and no more."""
    return 1.0


ATTACK = Attack(
    name="many_run_epsilon",
    title="Whether one noised sum shows more than its epsilon",
    citation=(
        "Jagielski, Ullman and Oprea 2020 (arXiv 2006.07709): lower bounds from exact intervals; Nasr et al. 2023 "
        "(arXiv 2302.07956): by the Gaussian trade-off curve"
    ),
    cost="seconds on one core for four hundred thousand sums of forty numbers",
    given=(
        "the profile's own mechanisms, as often as it likes; one known row, ten times longer than the clip lets through; all "
        "other documents, the helpers' shares of noise, and that the document's coin fell for it"
    ),
    needs=(REQUEST,),
    either=(),
    models=("lda", "lda-matched", "lda-vi", "prodlda", "sentence-lda", "sentence-lda-matched"),
    measures={DIRECT: "epsilon that one sum claims", GAUSSIAN: "epsilon that one sum claims"},
    attack=attack,
    judge=judge,
    efforts=(RUNS,),
    pose=pose,
    allowed=allowed,
    limits=(
        "the whole run: sampling, the number of rounds, and what a model keeps of its sums are left to the accountant",
        "sums as long as the model's: these have forty numbers, with the canary over all of them",
        "what hides the sum itself (masks, keys): sums are added in the open here, as an attacker would have them in the end",
        "mechanisms that fail for other documents than this one, or only now and then",
    ),
    remark=(
        "What is tried is the epsilon of one sum with the document in it for certain, worked out from the mechanism's own "
        "event without sampling; 1 stands in for it where none is claimed. Above 1, more is shown than was claimed. The "
        "Gaussian bound takes the noise for Gaussian and asks only how large it is; for Laplace noise it is no bound."
    ),
)
