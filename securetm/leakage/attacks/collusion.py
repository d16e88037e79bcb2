"""What parties that help the coordinator let it see of the others: the total less their own answers, and what their keys open.

It breaks no mask and no cipher; it uses what a helper has anyway: its own message, and the keys to its own masks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from securetm.contracts import Array, Profile, Unit
from securetm.leakage.adversary_view import VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, Estimate, GroundTruth, Reconstruction, Score
from securetm.leakage.parts.differences import without
from securetm.leakage.parts.gradient_reconstruction import invert_gradient
from securetm.leakage.parts.opened_answers import OpenedAnswer, opened_answers
from securetm.leakage.parts.prodlda_layers import GRADIENT, layers_of
from securetm.leakage.parts.reconstruction_scores import DOCUMENTS, EXACT, LINKS, TOGETHER, WORDS, judged, judged_documents
from securetm.leakage.parts.remaining_noise import deviation_of
from securetm.leakage.reading import ANSWER, REQUEST, SEALED, TOTAL, ReadVector, totals

ALONE = "documents recovered from one party's own answer"
MISSING = "promised noise that is missing"
DEVIATION = "deviation of the noise that remains, as a share of the promised one"
_REBUILT = {**DOCUMENTS, **WORDS, TOGETHER: LINKS[TOGETHER]}


@dataclass(frozen=True)
class RemainingSum:
    """What is left of one total by words: a row of the first layer for each, and the noise that the terms promise in it."""

    rows: Array
    promised: float  # 0 where none is


@dataclass(frozen=True)
class CollusionGuess:
    """What the helpers' answers and keys made visible of the others."""

    together: tuple[Reconstruction, ...]  # of all others, from what is left of totals
    alone: tuple[Reconstruction, ...]  # of each of the others, from its own message
    left: tuple[RemainingSum, ...]


def attack(view: AdversaryView, effort: Effort) -> CollusionGuess:
    """Run by the coordinator with all that its helpers hold."""
    told = [one for one in opened_answers(view) if GRADIENT in one.heard.blocks]
    helping = {insider.name for insider in view.insiders}
    left = list(_left(view, told, helping))[: effort["rounds"]]
    rounds = {heard.round.serial for heard in left}
    alone = [one.heard for one in told if one.heard.party not in helping and one.heard.round.serial in rounds]
    model, parties, profile = view.public.model, len(view.public.members), view.public.profile
    return CollusionGuess(
        tuple(invert_gradient(heard, model, parties) for heard in left),
        tuple(invert_gradient(heard, model) for heard in alone),
        tuple(RemainingSum(layers_of(heard, model).words, _promised(heard, profile)) for heard in left),
    )


def _left(view: AdversaryView, told: Sequence[OpenedAnswer], helping: set[str]) -> Iterator[ReadVector]:
    """Totals less what the helpers themselves put in, where all of them still know what that was."""
    for total in totals(view):
        if GRADIENT in total.blocks:
            own = [one.heard for one in told if one.whole and one.heard.round.serial == total.round.serial]
            mine = [heard for heard in own if heard.party in helping]
            if len(mine) == len(helping):
                yield without(total, mine)


def _promised(heard: ReadVector, profile: Profile) -> float:
    """The deviation of the noise in every number of a sum, whoever is to add it, as an accountant takes it.

    Noise on single words is in the documents before anything is summed: its deviation says nothing of the numbers of a sum.
    """
    terms = heard.round.terms
    by_opener = sum(part.total_deviation(terms) for part in profile.mechanisms)
    return 0.0 if terms.unit is Unit.WORD else (terms.deviation + by_opener) * (heard.round.step or 1.0)


def judge(seen: CollusionGuess, truth: GroundTruth) -> Score:
    """Run by the judge: only what is of parties that do not help is anything to recover."""
    honest = {which: held for which, held in truth.batches.items() if which[1] not in truth.helpers}
    others = replace(truth, batches=honest)
    alone = judged_documents(seen.alone, others)
    return judged(seen.together, others, _REBUILT, {ALONE: alone.measures[EXACT], **_noise(seen.left, truth)})


def _noise(left: Sequence[RemainingSum], truth: GroundTruth) -> dict[str, Estimate]:
    """From the rows of words that no honest party has, which would be zero without noise: its variance, with an interval.

    Where no noise is promised, none can be missing.
    """
    used = [np.asarray(held.sum(axis=0)).ravel() > 0 for name, held in truth.held.items() if name not in truth.helpers]
    unused = ~np.any(used, axis=0)
    values = np.concatenate([np.ravel(one.rows[unused]) / one.promised for one in left if one.promised] or [np.zeros(0)])
    if not values.size:
        return dict.fromkeys((MISSING, DEVIATION), Estimate(math.nan, 0.0, 1.0, 0.0))
    ratio, low, high = deviation_of(values, truth.confidence)
    gone = [min(max(1.0 - r * r, 0.0), 1.0) for r in (ratio, high, low)]
    return {MISSING: Estimate(gone[0], gone[1], gone[2], 1.0), DEVIATION: Estimate(ratio, low, high, 1.0)}


ATTACK = Attack(
    name="collusion",
    title="The others' documents, for a coordinator that some parties help",
    citation="Bonawitz et al. 2017 (ePrint 2017/281), section 6, on parties that share what they know with the server",
    cost="under a second on one core for each total over a hundred documents, and for each message of another party",
    given="keys of the parties that help, what these sent, the model's settings and words, and how many documents are in a sum",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=(ANSWER, SEALED),
    models=("prodlda",),
    measures={**_REBUILT, ALONE: "document", MISSING: "variance", DEVIATION: "promised deviation"},
    attack=attack,
    judge=judge,
    limits=(
        "documents behind noise: it says how much noise remains, and looks for them as if there were none",
        "rounds under an earlier set-up of masks, whose keys a party has no more",
        "helpers that break the rules: that drop out on purpose, or put something into the sum",
        "masks where only some parties are neighbours, and rounds in which somebody dropped out",
    ),
    remark="A sum hides whose an answer is among those who do not help, and nothing else: with all but two helping it is the "
    "sum of two, with all but one it is that party's answer. No protocol for sums can change that.",
)
