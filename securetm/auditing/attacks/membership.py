"""Whether a document was in the training: by shadow models, by the model's fit to it, and by the counts of its words.

The attack reads the finished model, or the opened sums of all rounds. It reads no single party's answer, so a secure sum does
not protect against it. It gets the candidates, and does not know which of them were trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from securetm.auditing.attack import Attack, Effort
from securetm.auditing.parts.membership_game import (
    ShadowRound,
    ShadowScores,
    allowed,
    best_fits,
    judged,
    measures,
    pose,
    presence,
    rounds_read,
    shadows_of,
)
from securetm.auditing.views import MODEL, REQUEST, TOTAL, VOCABULARY, AdversaryView, NotTestable, ReadVector, totals
from securetm.contracts import Array, State
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.models.neural.neural_lda import NeuralLDA
from securetm.models.neural.prodlda import ProdLDA

_RATIO, _LOSS, _COUNTS = "likelihood ratio", "loss", "word counts"
_TABLE = "counts"


def _scored(view: AdversaryView, fits: Array) -> dict[str, Array]:
    """Two scores of each candidate, higher for members: the likelihood ratio, and the mean fit of its words."""
    return {_RATIO: view.prepared.log_ratios(fits), _LOSS: fits / view.question.sum(axis=1)}


# ---- the finished model --------------------------------------------------------------------------------------------


def prepare_for_model(view: AdversaryView, effort: Effort) -> ShadowScores:
    """Trains the shadow models, before the attacker looks at the model."""

    def fits(rounds: Iterator[ShadowRound]) -> Array:
        *_, (_, _, state) = rounds
        return _fits(view, state)

    return shadows_of(view.question, view.vocabulary(), view.public, effort["shadows"], fits)


def attack_model(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:
    return _scored(view, _fits(view, view.model_state()))


def _fits(view: AdversaryView, state: State) -> Array:
    """Each candidate's log-likelihood, under its best shares of topics, or under those that a network infers from it."""
    model, candidates = view.public.model, view.question
    if not isinstance(model, (ProdLDA, NeuralLDA)):  # their encoders may remember documents beyond what their topics do
        return best_fits(candidates, model.topics(state))
    documents = Corpus(HeldDocuments(candidates, view.vocabulary(), np.zeros(candidates.shape[0], dtype=np.uint64)))
    return model.encoded_likelihood(state, documents, documents)


def attack_counts(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:
    """Solves one equation for each word: a finished model of counts has the counts of its training documents."""
    totals = np.asarray(view.model_state()[_TABLE], dtype=np.float64).sum(axis=0)
    share = float(totals.sum() / max(view.question.sum(), 1))  # of the candidates that are members
    return {_COUNTS: presence(view.question, totals, min(max(share, 0.0), 1.0))}


# ---- the opened sums -----------------------------------------------------------------------------------------------


def prepare_for_sums(view: AdversaryView, effort: Effort) -> ShadowScores:
    """Trains the shadow models, before the attacker looks at any message."""
    wanted = rounds_read(view.public, effort["rounds"])

    def fits(rounds: Iterator[ShadowRound]) -> Array:
        return _fits_in_all([total[_TABLE] for number, total, _ in rounds if number in wanted], view)

    return shadows_of(view.question, view.vocabulary(), view.public, effort["shadows"], fits)


def attack_sums(view: AdversaryView, effort: Effort) -> Mapping[str, Array]:
    """Compares the sums of all rounds with those of the shadow models, and solves the equations of their word counts."""
    wanted = rounds_read(view.public, effort["rounds"])
    vectors = [one for one in totals(view) if _TABLE in one.blocks and one.round.number in wanted]
    if len(vectors) != len(wanted):
        raise NotTestable("the training ended before the last round of its plan, so totals are missing that shadow models have")
    fits = _fits_in_all([one.blocks[_TABLE] for one in vectors], view)
    return {**_scored(view, fits), _COUNTS: _by_counts(vectors, view)}


def _fits_in_all(tables: list[Array], view: AdversaryView) -> Array:
    """The mean over the rounds of each candidate's log-likelihood under the topics of that round's sum."""
    model = view.public.model
    state = model.start(tuple(map(str, range(view.question.shape[1]))), np.random.default_rng(0))
    topics = (model.topics({**state, _TABLE: np.asarray(table, dtype=np.float64)}) for table in tables)
    found: Array = np.mean([best_fits(view.question, each) for each in topics], axis=0)
    return found


def _by_counts(vectors: list[ReadVector], view: AdversaryView) -> Array:
    """Every round counts the same words of the same documents again, so the mean over the rounds has less noise."""
    terms, counts = vectors[-1].round.terms, view.question
    summed: Array = np.sum([one.blocks[_TABLE].sum(axis=0, dtype=np.float64) for one in vectors], axis=0)
    topics = vectors[-1].blocks[_TABLE].shape[0]
    deviation = terms.deviation * (terms.grid or 1) * float(np.sqrt(topics / len(vectors))) / terms.sampling
    whole = terms.grid == 0  # rows of whole numbers are bounded count by count
    bounds = (min(terms.l1, 1e12), min(terms.linf, 1e12) * topics) if whole else (np.inf, np.inf)
    share = 1 - view.public.plan.training.held_out
    return presence(counts, summed / (len(vectors) * terms.sampling), share, deviation, *bounds)


_CANDIDATES = "the candidate documents themselves, which all parties' training documents are among"
_ONE_MODEL = "intervals are over the documents of one {}: another training of the same documents may find more or fewer"
_THRESHOLD = "at the stated confidence, at most the share of others is above the threshold, so some members are missed"
_TRAININGS = "one training of the whole model for each shadow model: seconds to minutes each, on one core"
_AS_MANY = (
    "the training share of the candidates are members; the rest were held out. In reality far more documents are not members, "
    "so a member that is found is less certain than these figures suggest"
)

MEMBERSHIP = Attack(
    name="membership",
    title="Whether a document was in the training, from the finished model",
    citation="Carlini et al. 2022, arXiv 2112.03570 (likelihood ratio); Manzonelli, Zhang and Vadhan 2024, arXiv 2403.04451 "
    "(topic models); Yeom et al. 2018, arXiv 1709.01604 (loss)",
    cost=_TRAININGS,
    given=f"{_CANDIDATES}, and how the run was set up",
    needs=(MODEL, VOCABULARY),
    models=("lda", "lda-vi", "prodlda", "neural-lda", "nmf", "moments"),
    measures=measures(_RATIO, _LOSS),
    bears_on=("linking", "inference"),
    attack=attack_model,
    judge=judged,
    efforts=("shadows",),
    pose=pose,
    prepare=prepare_for_model,
    allowed=allowed,
    limits=(
        _ONE_MODEL.format("model"),
        f"{_THRESHOLD}: papers set it on the curve itself, and count more",
        "runs that ended before the last round of their plan: shadow models train until that round, and fit less well",
        "documents that are rarer than those of the parties, or written to be remembered (plan of canaries)",
    ),
    remark=_AS_MANY,
)

MEMBERSHIP_COUNTS = Attack(
    name="membership_counts",
    title="Whether a document was in the training, from the word counts in the finished model",
    citation="Homer et al. 2008 (who is in published sums); Dwork et al. 2015 (robust traceability); solved as equations here",
    cost="seconds on one core",
    given=_CANDIDATES,
    needs=(MODEL, VOCABULARY),
    models=("lda", "lda-vi", "sentence-lda"),
    measures=measures(_COUNTS),
    bears_on=("linking", "inference"),
    attack=attack_counts,
    judge=judged,
    pose=pose,
    allowed=allowed,
    limits=(
        "training documents that are not among the candidates: each of them makes the equations less exact",
        "fewer words than documents: then there are fewer equations than unknowns",
        _ONE_MODEL.format("model"),
        _THRESHOLD,
    ),
    remark="Topics as shares of words, which hide the total length of the training texts, would show this less exactly.",
)

MEMBERSHIP_TRANSCRIPT = Attack(
    name="membership_transcript",
    title="Whether a document was in the training, from the totals of its rounds",
    citation="Carlini et al. 2022, arXiv 2112.03570; Manzonelli, Zhang and Vadhan 2024, arXiv 2403.04451; who is in published "
    "sums: Homer et al. 2008, Dwork et al. 2015",
    cost=_TRAININGS,
    given=f"{_CANDIDATES}, and how the run was set up",
    needs=(REQUEST, TOTAL, VOCABULARY),
    models=("lda", "lda-vi"),
    measures=measures(_RATIO, _LOSS, _COUNTS),
    bears_on=("linking", "inference"),
    attack=attack_sums,
    judge=judged,
    efforts=("shadows",),
    pose=pose,
    prepare=prepare_for_sums,
    allowed=allowed,
    limits=(
        _ONE_MODEL.format("run"),
        _THRESHOLD,
        "a document's own draws of topics, which follow from public numbers for an attacker who knows the document's key",
    ),
    remark=_AS_MANY,
)
