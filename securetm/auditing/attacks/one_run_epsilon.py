"""How much epsilon one whole run shows: fair coins decide which canaries take part, and the attack guesses the coins.

One run gives only a low bound: the number of canaries limits even the bound of an attacker who is never wrong. So the attack
detects a run that protects nothing. It cannot detect noise that is half of what it should be.
"""

from __future__ import annotations

import math

import numpy as np

from securetm.auditing.adversary_view import MODEL, AdversaryView
from securetm.auditing.attack import Attack, Effort, Estimate, GroundTruth, Score
from securetm.auditing.illustrations import Curve
from securetm.auditing.intervals import of_each
from securetm.auditing.leakage_errors import SmallerUnit
from securetm.auditing.parts.canary_scores import canary_scores, pose
from securetm.auditing.parts.empirical_epsilon import ideal_one_run, never_wrong_one_run, one_run_epsilon, right_guesses
from securetm.auditing.reading import ANSWER, TOTAL
from securetm.contracts import Array, Budget

SHOWN = "epsilon shown in one run"
_ABOUT = (8.0, 1e-5)  # the epsilon and delta for which guesses are chosen where none is claimed
_ACROSS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)


def attack(view: AdversaryView, effort: Effort) -> Array:  # noqa: ARG001 - it reads all rounds that it was given
    """Guesses about the canaries with the highest and lowest scores: 1 took part, -1 did not, 0 is no guess."""
    scores, budget = canary_scores(view), view.public.profile.budget
    about, sure = (budget.epsilon, budget.delta) if budget is not None else _ABOUT, of_each(view.question.confidence)
    half = (ideal_one_run(len(scores), *about, sure)[0] if budget is not None else len(scores)) // 2
    guesses, order = np.zeros(len(scores), dtype=np.int64), np.argsort(scores, kind="stable")
    guesses[order[len(scores) - half :]] = 1
    guesses[order[:half]] = -1
    return guesses


# ---- the judge -----------------------------------------------------------------------------------------------------


def judge(guesses: Array, truth: GroundTruth) -> Score:
    """Computes the epsilon that the right guesses show, and the most that as many canaries can show.

    Each end of the interval has half of the doubt.
    """
    coins = np.where(truth.answer, 1, -1)
    made, right = int((guesses != 0).sum()), int((guesses == coins).sum())
    delta = truth.claimed.delta if truth.claimed is not None else _ABOUT[1]
    sure = of_each(truth.confidence)
    low, ceiling = one_run_epsilon(len(coins), made, right, delta, sure), never_wrong_one_run(len(coins), made, delta, sure)
    odds = (share / (1 - share) if share < 1 else math.inf for share in right_guesses(right, made, truth.confidence))
    value, high = (min(max(math.log(one), low), ceiling) for one in odds)  # the epsilon that allows such shares at delta 0
    curves = _curves(len(coins), truth.claimed, low, sure) if truth.claimed is not None else ()
    return Score({SHOWN: Estimate(value, low, high, ceiling)}, curves=curves)


def _curves(canaries: int, claimed: Budget, low: float, confidence: float) -> tuple[Curve, ...]:
    points = tuple(sorted({*_ACROSS, claimed.epsilon}))
    ideal = tuple(ideal_one_run(canaries, epsilon, claimed.delta, confidence)[1] for epsilon in points)
    return (
        Curve("epsilon", "an ideal attacker of one run, on average", points, ideal),
        Curve("epsilon", "shown in one run", (claimed.epsilon,), (low,)),
    )


def allowed(measure: str, claimed: Budget) -> float:  # noqa: ARG001 - there is one
    """The run's whole epsilon, if it protects whole documents. Protection of a smaller unit says nothing of a document."""
    if not claimed.unit.whole_documents:
        raise SmallerUnit("one_run_epsilon", claimed.unit.value)
    return claimed.epsilon


ATTACK = Attack(
    name="one_run_epsilon",
    title="Which canaries took part in a run",
    citation=(
        "Steinke, Nasr and Jagielski 2023 (arXiv 2305.08846): privacy auditing with one training run; canaries as in Nasr et "
        "al. 2023 (arXiv 2302.07956)"
    ),
    cost="a run with a few hundred documents more, and seconds on one core",
    given=(
        "every other document, every canary and its party, the parties' public draws, and of each round the noised answers, "
        "their sum, or the model made of them; never a coin"
    ),
    either=(ANSWER, TOTAL, MODEL),
    models=("lda", "lda-vi", "moments"),
    measures={SHOWN: "epsilon"},
    attack=attack,
    judge=judge,
    pose=pose,
    allowed=allowed,
    limits=(
        "noise that is half of what it should be: on average an ideal attacker's bound is below the claim even then",
        "claims about words: noise that hides each word of a document does not hide that the document is there",
        "documents that are not made to be found",
        "other models than those whose answers are sums of documents' own rows",
    ),
    remark=(
        "One run shows only a part of its epsilon: an ideal attacker shows about 1 of 4.4 on average at 99.9 % (the line in "
        "the plot). The ceiling is the bound of an attacker who is never wrong. So a bound below the claim says little; its "
        "distance from the line says how good this attacker is."
    ),
)
