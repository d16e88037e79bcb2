"""Whether a document was in the training, from the finished model alone: a likelihood ratio by shadow models, and a bare fit.

It meets no transcript. The documents that it is asked about come without a word of which were trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from securetm.contracts import Array, State
from securetm.leakage.adversary_view import MODEL, VOCABULARY, AdversaryView
from securetm.leakage.attack import Attack, Effort, GroundTruth, Score
from securetm.leakage.parts.document_likelihood import best_fits
from securetm.leakage.parts.likelihood_ratio import log_ratios
from securetm.leakage.parts.membership_game import MembershipCandidates, allowed, judged, measures, pose
from securetm.leakage.parts.shadow_models import ShadowRound, ShadowScores, shadows_of
from securetm.models.estimator import BagOfWords

NETWORKS = ("prodlda",)  # whose encoder remembers documents beside what their topics remember
RATIO, LOSS = "likelihood ratio", "loss"


def prepare(view: AdversaryView, effort: Effort) -> ShadowScores:
    """Run by the attacker before it looks at the model."""

    def fits(candidates: MembershipCandidates, rounds: Iterator[ShadowRound]) -> Array:
        *_, (_, _, state) = rounds
        return _fits(candidates, view, state)

    return shadows_of(view.question, view.vocabulary(), view.public, effort["shadows"], fits)


def attack(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:  # noqa: ARG001 - the effort went into the shadow models
    """Run by whoever reads the finished model."""
    return scored(view.question, _fits(view.question, view, view.model_state()), view.prepared)


def scored(candidates: MembershipCandidates, fits: Array, shadows: ShadowScores) -> Mapping[str, Array]:
    """Both scores of each candidate, higher for members: the likelihood ratio, and the fit by word alone."""
    return {RATIO: log_ratios(fits, shadows.scores, shadows.inside), LOSS: fits / candidates.counts.sum(axis=1)}


def _fits(candidates: MembershipCandidates, view: AdversaryView, state: State) -> Array:
    """Each document's log-likelihood: by the shares of topics that suit it best, or by those that a network reads off it."""
    model = view.public.model
    if model.name not in NETWORKS:
        return best_fits(candidates.counts, model.topics(state))
    documents = BagOfWords(candidates.counts, view.vocabulary(), np.zeros(len(candidates), dtype=np.uint64))
    return model.log_likelihood(state, documents, documents)


def judge(guesses: Mapping[str, Array], truth: GroundTruth) -> Score:
    """Run by the judge."""
    return judged(guesses, truth)


ATTACK = Attack(
    name="membership",
    title="Whether a document was in the training, from the finished model",
    citation="Carlini et al. 2022, arXiv 2112.03570 (likelihood ratio); Manzonelli, Zhang and Vadhan 2024, arXiv 2403.04451 "
    "(topic models); Yeom et al. 2018, arXiv 1709.01604 (loss)",
    cost="one training of the whole model for each shadow model: seconds to minutes each, on one core",
    given="the candidate documents themselves, which all parties' training documents are among, and how the run was set up",
    needs=(MODEL, VOCABULARY),
    either=(),
    models=("lda", "lda-vi", "prodlda"),
    measures=measures(RATIO, LOSS),
    attack=attack,
    judge=judge,
    efforts=("shadows",),
    pose=pose,
    prepare=prepare,
    allowed=allowed,
    limits=(
        "intervals are over the documents of one model: another training of the same documents may tell more or fewer",
        "the threshold is set so that surely no more than the share of others lies above it, which costs some members: papers "
        "set it on the curve itself, and count more",
        "runs that ended before the last round of their plan: shadow models go on to it, and fit less well",
        "documents that are rarer, or written to be remembered, than those that the parties really hold (plan of canaries)",
    ),
    remark="as many candidates are members as were trained on, and the rest were held out; in the world there are far more "
    "others, so a found member is less sure than it looks here",
)
