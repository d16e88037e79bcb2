"""How much epsilon one noised sum shows when it is made very often, with one known document in it or without.

It tests the noise itself and nothing of a whole run: no sampling, no rounds, and no model that forgets. One run cannot
distinguish half the noise from all of it; very many sums can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from securetm.auditing.adversary_view import AdversaryView, PublicFacts
from securetm.auditing.attack import EVERY_MODEL, Attack, Challenge, Effort, Estimate, GroundTruth, Proportion, Score
from securetm.auditing.illustrations import Curve
from securetm.auditing.intervals import of_each
from securetm.auditing.parts.canary_sums import CanarySums, CanarySumSource, SumClaim
from securetm.auditing.parts.empirical_epsilon import (
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
from securetm.auditing.reading import REQUEST
from securetm.contracts import Array, Budget

RUNS = "runs"
DIRECT = "share of one sum's epsilon that is shown, nothing assumed"
GAUSSIAN = "share of one sum's epsilon that is shown, if the noise is Gaussian"
UNCLAIMED = 1.0  # the epsilon to compare with where a profile claims none
NOTHING = 1e-6  # the epsilon to compare with where a profile claims 0: a share of 0 would be infinite
_CHOSEN_AT = 0.999  # the confidence at which thresholds are chosen; they are judged at the plan's own
_ACROSS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True)
class ThresholdTest:
    """The score of each unlabelled sum, and the score from which on the canary is said to be in it, for each bound."""

    scores: Array
    direct: float
    gaussian: float


@dataclass(frozen=True)
class HiddenCoins:
    """In which sums the canary was, and what one sum claims. Only the judge has it."""

    coins: Array
    claim: SumClaim


Sources = Callable[[PublicFacts, tuple[str, ...]], CanarySumSource]


def pose(
    truth: GroundTruth, effort: Effort, rng: np.random.Generator, source_of: Sources = CanarySumSource.of_training
) -> Challenge:
    """Makes sums with and without a label. Their noise is the operating system's; only the coins can be repeated."""
    assert truth.public is not None
    source, half = source_of(truth.public, truth.vocabulary), max(effort[RUNS] // 4, 1)
    coins = rng.integers(0, 2, 2 * half).astype(bool)
    unknown = np.empty((2 * half, source.width), dtype=np.float32)
    unknown[coins], unknown[~coins] = (source.opened(int((coins == there).sum()), present=there) for there in (True, False))
    question = CanarySums(source.opened(half, present=True), source.opened(half, present=False), unknown)
    return Challenge(question, HiddenCoins(coins, source.claimed), question.shuffled)


def attack(view: AdversaryView, effort: Effort) -> ThresholdTest:  # noqa: ARG001 - how many sums there are is the question's
    """Projects the sums on the direction in which the canary moves them, and chooses thresholds on the labelled sums."""
    sums: CanarySums = view.question
    moved = (sums.present.mean(axis=0) - sums.absent.mean(axis=0)).astype(np.float64)
    present, absent = sums.present @ moved, sums.absent @ moved
    delta = view.public.profile.budget.delta if view.public.profile.budget else 0.0
    direct = best_threshold(present, absent, lambda errors: direct_epsilon(errors, delta, _CHOSEN_AT))
    gaussian = best_threshold(present, absent, lambda errors: gaussian_shift(errors, _CHOSEN_AT))
    return ThresholdTest(sums.unknown @ moved, direct, gaussian)


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(guess: ThresholdTest, truth: GroundTruth) -> Score:
    """Scores the unlabelled sums only: no threshold is judged on the sums that it was chosen on."""
    secret: HiddenCoins = truth.answer
    claim, present, absent = secret.claim, guess.scores[secret.coins], guess.scores[~secret.coins]
    direct, gaussian = (errors_at(threshold, present, absent) for threshold in (guess.direct, guess.gaussian))
    shown = {DIRECT: _by_ratio(direct, claim.delta, truth.confidence)}
    if not claim.pure:  # the noise may be Gaussian
        shown[GAUSSIAN] = _by_shift(gaussian, claim.delta, truth.confidence)
    measures = {name: _share(found, claim.epsilon) for name, found in shown.items()}
    curves = _curves(shown, claim, min(len(present), len(absent)), truth.confidence)
    return Score({GAUSSIAN: Proportion(0, 0), **measures}, curves=curves)


def _by_ratio(errors: ErrorCounts, delta: float, confidence: float) -> Estimate:
    """Each end is from an interval at half of the doubt, so both ends together hold at the given confidence."""
    confidence = of_each(confidence)
    most = direct_epsilon(errors.never_wrong, delta, confidence)
    middle, high = log_ratio(*errors.smoothed(), delta), log_ratio(*errors.at_best(confidence), delta)
    return _bounded(middle, direct_epsilon(errors, delta, confidence), high, most)


def _by_shift(errors: ErrorCounts, delta: float, confidence: float) -> Estimate:
    """The same under the assumption that the noise is Gaussian."""
    confidence = of_each(confidence)
    most = gaussian_shift(errors.never_wrong, confidence)
    high = min(shift(*errors.at_best(confidence)), most)
    mus = (shift(*errors.smoothed()), gaussian_shift(errors, confidence), high, most)
    return _bounded(*(gaussian_epsilon(mu, delta) for mu in mus))


def _bounded(value: float, low: float, high: float, most: float) -> Estimate:
    """An attacker who is never wrong shows `most` on so many sums. No upper end beyond it is known."""
    return Estimate(min(max(value, low), most), low, max(min(high, most), low), most)


def _share(found: Estimate, epsilon: float | None) -> Estimate:
    claimed = UNCLAIMED if epsilon is None else max(epsilon, NOTHING)
    return Estimate(found.value / claimed, found.low / claimed, found.high / claimed, found.ceiling / claimed)


def _curves(shown: dict[str, Estimate], claim: SumClaim, runs: int, confidence: float) -> tuple[Curve, ...]:
    """Over the claimed epsilon: what was surely shown, and what an ideal attacker would show of honest noise."""
    if claim.epsilon is None:
        return ()
    points, curves = tuple(sorted({*_ACROSS, claim.epsilon})), list[Curve]()
    for name, found in shown.items():
        assumed, ideal = name.split(", ")[1], _ideal(name, points, claim, runs, of_each(confidence))
        curves.append(Curve("epsilon", f"an ideal attacker, so many sums, {assumed}, on average", points, ideal))
        curves.append(Curve("epsilon", f"shown, {assumed}", (claim.epsilon,), (found.low,)))
    return tuple(curves)


def _ideal(name: str, points: tuple[float, ...], claim: SumClaim, runs: int, confidence: float) -> tuple[float, ...]:
    if claim.pure:
        return tuple(ideal_pure(runs, epsilon, claim.delta, confidence) for epsilon in points)
    best = ideal_direct if name == DIRECT else ideal_gaussian
    return tuple(best(runs, gaussian_mu(epsilon, claim.delta), claim.delta, confidence) for epsilon in points)


def allowed(measure: str, claimed: Budget) -> float:  # noqa: ARG001 - the claim of one sum is the mechanism's, not the run's
    """The whole epsilon that one sum claims."""
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
        "the profile's own mechanisms, as often as it likes; one known row, ten times as long as the clip's bound; all other "
        "documents, the colluding parties' shares of noise, and that sampling chose the document"
    ),
    needs=(REQUEST,),
    models=EVERY_MODEL,
    measures={DIRECT: "epsilon that one sum claims", GAUSSIAN: "epsilon that one sum claims"},
    attack=attack,
    judge=judge,
    efforts=(RUNS,),
    pose=pose,
    allowed=allowed,
    limits=(
        "the whole run: only the accountant considers sampling, the number of rounds, and what a model keeps of its sums",
        "sums as long as the model's: these have forty numbers, and the canary changes all of them",
        "what hides the answers (masks, keys): the attack adds them in the open, and has the sum that the protocol opens",
        "mechanisms that fail for other documents than this one, or rarely",
    ),
    remark=(
        "It tests the epsilon of one sum that certainly has the document in it, computed from the mechanism's own event "
        "without sampling; where none is claimed, 1 replaces it. A share above 1 refutes the claim. The Gaussian bound assumes "
        "Gaussian noise of unknown size; for Laplace noise it is no bound."
    ),
)
