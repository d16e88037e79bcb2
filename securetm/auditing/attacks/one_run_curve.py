"""How much epsilon one whole run shows by bounds that can refute it: by the claim's trade-off curve, and by Gaussian scores.

It scores canaries as `one_run_epsilon` does. Only the judge differs: it assumes more, and detects noise that is half of what it
should be. Where its assumptions fail, its bounds may lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.auditing.adversary_view import MODEL, AdversaryView
from securetm.auditing.attack import Attack, Effort, Estimate, GroundTruth, Score
from securetm.auditing.illustrations import Curve
from securetm.auditing.intervals import of_each
from securetm.auditing.leakage_errors import SmallerUnit
from securetm.auditing.parts.canary_scores import canary_scores, pose
from securetm.auditing.parts.empirical_epsilon import gaussian_epsilon, gaussian_mu, right_guesses
from securetm.auditing.parts.one_run_bounds import (
    MOST_SHIFT,
    best_guesses,
    curve_shift,
    ideal_curve,
    ideal_scores,
    likeliest_shift,
    score_shift,
)
from securetm.auditing.reading import ANSWER, TOTAL
from securetm.contracts import Array, Budget

BY_CURVE = "epsilon shown in one run, if its trade-off curve is Gaussian"
BY_SCORES = "epsilon shown in one run, if canaries' scores are independent and Gaussian"
_ABOUT = (8.0, 1e-5)  # the epsilon and delta for which guesses are chosen where none is claimed
_ACROSS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True)
class ScoredCanaries:
    """The score of each canary, and guesses about the highest and lowest: 1 took part, -1 did not, 0 is no guess."""

    scores: Array
    guesses: Array


def attack(view: AdversaryView, effort: Effort) -> ScoredCanaries:  # noqa: ARG001 - it reads all rounds that it was given
    """Scores the canaries, and guesses about some of them."""
    budget = view.public.profile.budget
    about = (budget.epsilon, budget.delta) if budget is not None else _ABOUT
    return guessed(canary_scores(view), *about, view.question.confidence)


def guessed(scores: Array, epsilon: float, delta: float, confidence: float) -> ScoredCanaries:
    """Guesses about as many canaries as would show most of a run with half of the noise of this claim."""
    half = best_guesses(len(scores), epsilon, delta, of_each(confidence)) // 2
    guesses, order = np.zeros(len(scores), dtype=np.int64), np.argsort(scores, kind="stable")
    guesses[order[len(scores) - half :]] = 1
    guesses[order[:half]] = -1
    return ScoredCanaries(scores, guesses)


def judge(found: ScoredCanaries, truth: GroundTruth) -> Score:
    """Computes both bounds. Each end of an interval has half of the doubt."""
    coins, sure = np.asarray(truth.answer, dtype=bool), of_each(truth.confidence)
    delta = truth.claimed.delta if truth.claimed is not None else _ABOUT[1]
    made, right = int((found.guesses != 0).sum()), int((found.guesses == np.where(coins, 1, -1)).sum())
    by_curve = _by_curve(len(coins), made, right, delta, truth.confidence)
    value, low, high = (gaussian_epsilon(shift, delta) for shift in score_shift(found.scores, coins, sure))
    by_scores = Estimate(value, low, high, gaussian_epsilon(MOST_SHIFT, delta))
    curves = _curves(len(coins), made, truth.claimed, by_curve.low, by_scores.low, sure) if truth.claimed is not None else ()
    return Score({BY_CURVE: by_curve, BY_SCORES: by_scores}, curves=curves)


def _by_curve(canaries: int, made: int, right: int, delta: float, confidence: float) -> Estimate:
    """The interval's upper end is of the shift that an ideal attacker with as many right guesses would have."""
    sure = of_each(confidence)
    low, ceiling = (gaussian_epsilon(curve_shift(canaries, made, hits, sure), delta) for hits in (right, made))
    likely = (likeliest_shift(canaries, made, share) for share in right_guesses(right, made, confidence))
    value, high = (min(max(gaussian_epsilon(shift, delta), low), ceiling) for shift in likely)
    return Estimate(value, low, max(value, high), ceiling)


def _curves(canaries: int, made: int, claimed: Budget, by_curve: float, by_scores: float, sure: float) -> tuple[Curve, ...]:
    points = tuple(sorted({*_ACROSS, claimed.epsilon}))
    shifts = [gaussian_mu(epsilon, claimed.delta) for epsilon in points]
    curve = tuple(gaussian_epsilon(ideal_curve(canaries, made, mu, sure), claimed.delta) for mu in shifts)
    scores = tuple(gaussian_epsilon(ideal_scores(canaries, mu, sure), claimed.delta) for mu in shifts)
    return (
        Curve("epsilon", "an ideal attacker by the curve, on average", points, curve),
        Curve("epsilon", "an ideal attacker by scores, on average", points, scores),
        Curve("epsilon", "shown by the curve", (claimed.epsilon,), (by_curve,)),
        Curve("epsilon", "shown by scores", (claimed.epsilon,), (by_scores,)),
    )


def allowed(measure: str, claimed: Budget) -> float:  # noqa: ARG001 - both are the run's whole epsilon
    """The run's whole epsilon, if it protects whole documents. Protection of a smaller unit says nothing of a document."""
    if not claimed.unit.whole_documents:
        raise SmallerUnit("one_run_curve", claimed.unit.value)
    return claimed.epsilon


ATTACK = Attack(
    name="one_run_curve",
    title="Whether a run shows more canaries than its trade-off curve allows",
    citation=(
        "Mahloujifar, Melis and Chaudhuri 2024 (arXiv 2410.22235): auditing f-differential privacy in one run; Gaussian scores "
        "after Agrawal et al. 2026 (arXiv 2606.12733), by a noncentral t statistic"
    ),
    cost="a run with a few hundred documents more, and seconds on one core",
    given=(
        "every other document, every canary and its party, the parties' public draws, and of each round the noised answers, "
        "their sum, or the model made of them; never a coin"
    ),
    either=(ANSWER, TOTAL, MODEL),
    models=("lda", "lda-vi", "moments"),
    measures={BY_CURVE: "epsilon", BY_SCORES: "epsilon"},
    attack=attack,
    judge=judge,
    pose=pose,
    allowed=allowed,
    limits=(
        "runs whose trade-off curve is not that of Gaussian noise: the bound by the curve then tests the wrong curve",
        "scores that depend on each other, or are not Gaussian: the bound by scores then says more than it knows",
        "claims about words: noise that hides each word of a document does not hide that the document is there",
        "documents that are not made to be found, and other models than those whose answers are sums of documents' own rows",
    ),
    remark=(
        "Both bounds assume something of the run, and say what. An ideal attacker of a run with half of its noise shows more "
        "than the claim from about 1,000 canaries on by the curve, and from about 100 on by scores. A bound below the claim "
        "says little."
    ),
)
