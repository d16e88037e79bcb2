"""Whether a document was in the training, from the word counts in a finished model: an equation for each word, no shadow model.

A model that counts is released as counts. Added up over topics they are those of the training documents, to the last word.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from securetm.contracts import Array
from securetm.leakage.adversary_view import MODEL, VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, GroundTruth, Score
from securetm.leakage.parts.membership_game import allowed, judged, measures, pose
from securetm.leakage.parts.word_equations import presence

COUNTS = "word counts"


def attack(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:  # noqa: ARG001 - there is nothing to do harder
    """Run by whoever reads the finished model."""
    totals = np.asarray(view.model_state()["counts"], dtype=np.float64).sum(axis=0)
    return {COUNTS: presence(view.question.counts, totals, share_of(view, totals))}


def share_of(view: AdversaryView, totals: Array) -> float:
    """What part of the candidates is there, by how many words are."""
    share = float(totals.sum() / max(view.question.counts.sum(), 1))
    return min(max(share, 0.0), 1.0)


def judge(guesses: Mapping[str, Array], truth: GroundTruth) -> Score:
    """Run by the judge."""
    return judged(guesses, truth)


ATTACK = Attack(
    name="membership_counts",
    title="Whether a document was in the training, from the word counts in the finished model",
    citation="Homer et al. 2008 (who is in published sums); Dwork et al. 2015 (robust traceability); solved as equations here",
    cost="seconds on one core",
    given="the candidate documents themselves, which all parties' training documents are among",
    needs=(MODEL, VOCABULARY),
    either=(),
    models=("lda", "lda-vi", "sentence-lda"),
    measures=measures(COUNTS),
    attack=attack,
    judge=judge,
    pose=pose,
    allowed=allowed,
    limits=(
        "training documents that are not among the candidates: each of them makes the equations vaguer",
        "fewer words than documents: then there are fewer equations than unknowns",
        "intervals are over the documents of one model: another training of the same documents may tell more or fewer",
        "the threshold is set so that surely no more than the share of others lies above it, which costs some members",
    ),
    remark="topics as shares of words, which do not say how long the training texts were in all, would show this less exactly",
)
