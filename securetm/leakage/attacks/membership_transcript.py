"""Whether a document was in the training, from the totals that a coordinator sees: by shadow models, fit and word counts.

It looks at no single party's answer, so a secure sum takes nothing from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from securetm.contracts import Array
from securetm.leakage.adversary_view import VOCABULARY, AdversaryView, PublicFacts
from securetm.leakage.attack import Attack, Effort, GroundTruth, Score
from securetm.leakage.leakage_errors import EndedEarly
from securetm.leakage.parts.document_likelihood import best_fits
from securetm.leakage.parts.likelihood_ratio import log_ratios
from securetm.leakage.parts.membership_game import MembershipCandidates, allowed, judged, measures, pose
from securetm.leakage.parts.shadow_models import ShadowRound, ShadowScores, rounds_read, shadows_of
from securetm.leakage.parts.word_equations import presence
from securetm.leakage.reading import REQUEST, TOTAL, ReadVector, totals

RATIO, LOSS, COUNTS = "likelihood ratio", "loss", "word counts"
_TABLE = "counts"


def prepare(view: AdversaryView, effort: Effort) -> ShadowScores:
    """Run by the attacker before it looks at any message."""
    public, wanted = view.public, rounds_read(view.public, effort["rounds"])

    def fits(candidates: MembershipCandidates, rounds: Iterator[ShadowRound]) -> Array:
        tables = [total[_TABLE] for number, total, _ in rounds if number in wanted]
        return fit_in_all(candidates, tables, public)

    return shadows_of(view.question, view.vocabulary(), public, effort["shadows"], fits)


def attack(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:
    """Run by whoever sees totals."""
    wanted = rounds_read(view.public, effort["rounds"])
    heard = [one for one in totals(view) if _TABLE in one.blocks and one.round.number in wanted]
    if len(heard) != len(wanted):
        raise EndedEarly("the coordinator")
    fits = fit_in_all(view.question, [one.blocks[_TABLE] for one in heard], view.public)
    return {
        RATIO: log_ratios(fits, view.prepared.scores, view.prepared.inside),
        LOSS: fits / view.question.counts.sum(axis=1),
        COUNTS: _by_counts(heard, view),
    }


def fit_in_all(candidates: MembershipCandidates, tables: list[Array], public: PublicFacts) -> Array:
    """The mean over the rounds of how well the topics of that round's total explain each document."""
    state = public.model.start(tuple(map(str, range(candidates.counts.shape[1]))), np.random.default_rng(0))
    topics = (public.model.topics({**state, _TABLE: np.asarray(table, dtype=np.float64)}) for table in tables)
    found: Array = np.mean([best_fits(candidates.counts, each) for each in topics], axis=0)
    return found


def _by_counts(heard: list[ReadVector], view: AdversaryView) -> Array:
    """Every round counts the same words of the same documents anew, so noise is averaged over the rounds."""
    terms, counts = heard[-1].round.terms, view.question.counts
    summed: Array = np.sum([one.blocks[_TABLE].sum(axis=0, dtype=np.float64) for one in heard], axis=0)
    topics = heard[-1].blocks[_TABLE].shape[0]
    deviation = terms.deviation * (terms.grid or 1) * float(np.sqrt(topics / len(heard))) / terms.sampling
    whole = terms.grid == 0  # rows of whole numbers are bounded count by count
    bounds = (min(terms.l1, 1e12), min(terms.linf, 1e12) * topics) if whole else (np.inf, np.inf)
    return presence(counts, summed / (len(heard) * terms.sampling), 1 - view.public.plan.training.held_out, deviation, *bounds)


def judge(guesses: Mapping[str, Array], truth: GroundTruth) -> Score:
    """Run by the judge."""
    return judged(guesses, truth)


ATTACK = Attack(
    name="membership_transcript",
    title="Whether a document was in the training, from the totals of its rounds",
    citation="Carlini et al. 2022, arXiv 2112.03570; Manzonelli, Zhang and Vadhan 2024, arXiv 2403.04451; who is in published "
    "sums: Homer et al. 2008, Dwork et al. 2015",
    cost="one training of the whole model for each shadow model: seconds to minutes each, on one core",
    given="the candidate documents themselves, which all parties' training documents are among, and how the run was set up",
    needs=(REQUEST, TOTAL, VOCABULARY),
    either=(),
    models=("lda", "lda-vi"),
    measures=measures(RATIO, LOSS, COUNTS),
    attack=attack,
    judge=judge,
    efforts=("shadows",),
    pose=pose,
    prepare=prepare,
    allowed=allowed,
    limits=(
        "intervals are over the documents of one run: another training of the same documents may tell more or fewer",
        "the threshold is set so that surely no more than the share of others lies above it, which costs some members",
        "what a document's own draws of topics give away, which follow from public numbers for whoever knows its key",
    ),
    remark="as many candidates are members as were trained on, and the rest were held out; in the world there are far more "
    "others, so a found member is less sure than it looks here",
)
