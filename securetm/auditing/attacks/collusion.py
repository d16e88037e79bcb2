"""The other parties' documents, for a coordinator with colluding parties: the sum less their answers, and what their keys open.

It breaks no mask and no cipher. It uses what a colluding party has: its own message, and the keys of its own masks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from securetm.auditing.adversary_view import VOCABULARY, AdversaryView
from securetm.auditing.attack import Attack, Effort, Estimate, GroundTruth, RoundReconstruction, Score
from securetm.auditing.parts.differences import without
from securetm.auditing.parts.opened_answers import OpenedAnswer, opened_answers
from securetm.auditing.parts.prodlda_layers import GRADIENT, gradients, invert_gradient, layers_of
from securetm.auditing.parts.reconstruction_scores import DOCUMENTS, EXACT, LINKS, TOGETHER, WORDS, judged, judged_documents
from securetm.auditing.reading import BY_PARTIES, REQUEST, TOTAL, ReadVector, totals
from securetm.contracts import Array, NoiseBy, Profile, Unit
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.plans.profiles import cohort_of

ALONE = "documents recovered from one party's own answer"
MISSING = "promised noise that is missing"
DEVIATION = "deviation of the noise that remains, as a share of the promised one"
_REBUILT = {**DOCUMENTS, **WORDS, TOGETHER: LINKS[TOGETHER]}


@dataclass(frozen=True)
class RemainingSum:
    """One sum less the helpers' answers: the first layer's row of each word, and the noise that the terms promise in it."""

    rows: Array
    promised: float  # 0 where none is


@dataclass(frozen=True)
class CollusionGuess:
    """What the helpers' answers and keys show of the other parties."""

    together: tuple[RoundReconstruction, ...]  # of all other parties, from what remains of the sums
    alone: tuple[RoundReconstruction, ...]  # of each other party, from its own message
    left: tuple[RemainingSum, ...]


def attack(view: AdversaryView, effort: Effort) -> CollusionGuess:
    """Subtracts from the sums, and from each party's message, all that the helpers know."""
    answers = [one for one in opened_answers(view) if GRADIENT in one.vector.blocks]
    left = list(_left(view, answers))[: effort["rounds"]]
    rounds = {vector.round.serial for vector in left}
    alone = [one.vector for one in answers if one.vector.party not in view.helpers and one.vector.round.serial in rounds]
    model, parties, profile = view.public.model, len(view.public.members), view.public.profile
    return CollusionGuess(
        tuple(invert_gradient(vector, model, parties) for vector in left),
        tuple(invert_gradient(vector, model) for vector in alone),
        tuple(RemainingSum(layers_of(vector, model).words, _promised(vector, profile)) for vector in left),
    )


def _left(view: AdversaryView, answers: Sequence[OpenedAnswer]) -> Iterator[ReadVector]:
    """Each sum less what the helpers added to it, if the vectors of all helpers are known."""
    for total in gradients(totals(view)):
        of_round = [one for one in answers if one.in_clear and one.vector.round.serial == total.round.serial]
        own = [_in_the_sum(one, view) for one in of_round if one.vector.party in view.helpers]
        if len(own) == len(view.helpers):
            yield without(total, own)


def _in_the_sum(answer: OpenedAnswer, view: AdversaryView) -> ReadVector:
    """A helper's vector without the parts of its noise that were taken off the sum."""
    terms, profile = answer.vector.round.terms, view.public.profile
    shares = [part for part in profile.mechanisms if part.noise_by is NoiseBy.SHARES]
    if not answer.surplus or not shares:
        return answer.vector
    parts = cast(NoiseShares, shares[0]).surplus(terms, cohort_of(profile, view.public.members))
    blocks = answer.vector.blocks
    whole = np.concatenate([np.rint(block / terms.grid).astype(np.int64).ravel() for block in blocks.values()])
    for part, told in zip(parts[-len(answer.surplus) :], answer.surplus, strict=True):
        part.take_off(whole, told)
    pieces = np.split(whole, np.cumsum([block.size for block in blocks.values()])[:-1])
    less = {name: (piece * terms.grid).reshape(blocks[name].shape) for name, piece in zip(blocks, pieces, strict=True)}
    return replace(answer.vector, blocks=less)


def _promised(vector: ReadVector, profile: Profile) -> float:
    """The deviation of the noise in every number of a sum, from parties and opener, as the accountant counts it.

    Noise on single words is in the documents before they are summed, so its deviation does not apply to a sum.
    """
    terms = vector.round.terms
    by_opener = sum(part.total_deviation(terms) for part in profile.mechanisms)
    return 0.0 if terms.unit is Unit.WORD else (terms.deviation + by_opener) * (vector.round.terms.grid or 1.0)


def judge(guess: CollusionGuess, truth: GroundTruth) -> Score:
    """Scores the documents of honest parties only."""
    honest = {which: held for which, held in truth.batches.items() if which[1] not in truth.helpers}
    others = replace(truth, batches=honest)
    alone = judged_documents(guess.alone, others)
    return judged(guess.together, others, _REBUILT, {ALONE: alone.measures[EXACT], **_noise(guess.left, truth)})


def _noise(left: Sequence[RemainingSum], truth: GroundTruth) -> dict[str, Estimate]:
    """The noise that remains. Without noise, the rows of words that no honest party has would be zero.

    Where no noise is promised, none can be missing.
    """
    unused = ~np.any([np.asarray(held.sum(axis=0)).ravel() > 0 for held in truth.honest(truth.held).values()], axis=0)
    values = np.concatenate([np.ravel(one.rows[unused]) / one.promised for one in left if one.promised] or [np.zeros(0)])
    if not values.size:
        return dict.fromkeys((MISSING, DEVIATION), Estimate(math.nan, 0.0, 1.0, 0.0))
    ratio, low, high = _deviation(values, truth.confidence)
    value, least, most = (min(max(1.0 - r * r, 0.0), 1.0) for r in (ratio, high, low))
    return {MISSING: Estimate(value, least, most, 1.0), DEVIATION: Estimate(ratio, low, high, 1.0)}


def _deviation(values: Array, confidence: float) -> tuple[float, float, float]:
    """The deviation of independent normal numbers about zero, and its two-sided interval (chi-squared)."""
    from scipy.stats import chi2

    square, count, tail = float(np.sum(np.square(values))), len(values), (1.0 - confidence) / 2.0
    low, high = (square / float(chi2.ppf(at, count)) for at in (1.0 - tail, tail))
    return float(np.sqrt(square / count)), float(np.sqrt(low)), float(np.sqrt(high))


ATTACK = Attack(
    name="collusion",
    title="The others' documents, for a coordinator that some parties help",
    citation="Bonawitz et al. 2017 (ePrint 2017/281), section 6, on parties that share what they know with the server",
    cost="under a second on one core for each total over a hundred documents, and for each message of another party",
    given="keys of the parties that help, what these sent, the model's settings and words, and how many documents are in a sum",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=BY_PARTIES,
    models=("prodlda",),
    measures={**_REBUILT, ALONE: "document", MISSING: "variance", DEVIATION: "promised deviation"},
    attack=attack,
    judge=judge,
    limits=(
        "documents behind noise: it measures how much noise remains, and looks for documents as if there were none",
        "rounds under an earlier set-up of masks, whose keys a party no longer has",
        "helpers that violate the protocol: that drop out on purpose, or change the sum",
        "masks where only some parties are neighbours, and rounds in which a party dropped out",
    ),
    remark="A sum hides an answer only among the parties that do not collude. If all but two collude, the coordinator learns "
    "the sum of two answers; if all but one collude, it learns that party's answer. No protocol for sums can change that.",
)
