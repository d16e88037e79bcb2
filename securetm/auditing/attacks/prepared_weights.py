"""Whether neighbouring sums are as near to each other as the terms say, under weights that were made to separate them.

It tests the bound that sizes the noise, and neither the noise nor any epsilon. The documents pass the steps of the training's
route before the one that adds noise, once all together and once without each of them.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Self, cast

import numpy as np

from securetm.answers.route import Route
from securetm.auditing.attack import Attack, Challenge, Effort, Estimate, GroundTruth, MemoryStore, Score, stacked
from securetm.auditing.parts.gradients import network_shape
from securetm.auditing.views import REQUEST, AdversaryView, PublicFacts
from securetm.contracts import INF, Array, Query, RoundContext, Sampling, State, TopicModel, Unit
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.data_classes import dataclass, replace
from securetm.entropy import OperatingSystem
from securetm.federation.questions import TRAIN, Questions
from securetm.models.neural.neural_model import NeuralTopicModel
from securetm.plans.profiles import cohort_of

DOCUMENTS, STATES = "documents", "states"
FARTHEST = "distance of neighbouring sums, in sensitivities that the terms state"
UNBOUNDED = 1.0  # the sensitivity to compare with where the terms state none: what our profiles clip rows to
ALLOWANCE = 1e-5  # share of a distance that does not count: results are kept with six digits, and counts reach their bound
_OF_ONE_PERSON = 2  # documents, where persons are protected
_LOUD = {"float32": (1e3, 1e6), "float64": (1e8, 1e11)}  # second layer and heads: rounding errors decide between topics
_MOST_COUNTED = 12.0  # decimal places of the largest number in a table


@dataclass(frozen=True)
class StatedSensitivity:
    """The sensitivity that the terms state, in the sums' own numbers."""

    sensitivity: float
    owners: int  # documents or persons in the sum


def pose(truth: GroundTruth, effort: Effort, rng: np.random.Generator) -> Challenge:
    """Measures distances between sums of the parties' own documents, as one party would answer before it adds noise.

    The question holds the distances of sums that are one document or person apart. Its control holds the distances of two sums
    of the same documents, which differ only by random sampling, if there is any.
    """
    assert truth.public is not None
    documents = _documents(truth, effort[DOCUMENTS], truth.public.agreement.unit is Unit.PERSON, rng)
    assert documents.persons is not None
    persons, sensitivity, neighbours, repeated = np.unique(documents.persons), INF, list[float](), list[float]()
    without_each = [documents.select(np.flatnonzero(documents.persons != person)) for person in persons]
    for _ in range(effort[STATES]):
        asked = PreparedQuery.about(truth.public, truth.vocabulary, rng)
        sensitivity = asked.route.terms.l2
        whole = asked.total(documents)
        repeated.append(float(np.linalg.norm(whole - asked.total(documents))))
        neighbours += [float(np.linalg.norm(whole - asked.total(rest))) for rest in without_each]
    stated = StatedSensitivity(UNBOUNDED if sensitivity == INF else sensitivity, len(persons))
    return Challenge(tuple(neighbours), stated, lambda _: tuple(repeated))


def _documents(truth: GroundTruth, most: int, of_persons: bool, rng: np.random.Generator) -> Corpus:
    """So many of the parties' documents, at most. Each person has two where persons are protected, else one."""
    counts = stacked(truth.held.values())
    chosen = rng.permutation(counts.shape[0])[:most]
    persons = np.arange(len(chosen)) // (_OF_ONE_PERSON if of_persons else 1)
    keys = rng.integers(0, 2**64, len(chosen), dtype=np.uint64)
    embeddings = np.concatenate(list(truth.embeddings.values()))[chosen] if truth.embeddings else None
    return Corpus(HeldDocuments(counts[chosen], truth.vocabulary, keys, embeddings=embeddings, persons=persons))


# ---- the question, up to the noise -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PreparedQuery:
    """The training's question about a prepared state, and its route without noise and without sampling."""

    query: Query
    route: Route
    context: RoundContext

    @classmethod
    def about(cls, public: PublicFacts, words: tuple[str, ...], rng: np.random.Generator) -> Self:
        """Prepares a state."""
        questions = Questions(public.agreement)
        questions.adopt(words)
        state = public.model.for_party(prepared(public.model, words, rng), public.members[0])
        query, cohort = questions.make(TRAIN, state), cohort_of(public.profile, public.members)
        whole = Route.through(query.terms, public.profile.mechanisms, cohort)
        before_noise = list(takewhile(lambda step: step.event is None, whole.steps))  # noise is sized by the terms so far
        kept = [step.mechanism for step in before_noise if step.mechanism.sampling is Sampling.NONE]
        terms = before_noise[-1].after if before_noise else query.terms
        route = replace(Route.through(query.terms, kept, cohort), terms=terms)
        return cls(query, route, RoundContext(cohort, OperatingSystem(), MemoryStore()))

    def total(self, documents: Corpus) -> Array:
        """One party's sum of these documents."""
        answer = self.route.answer(self.query, documents, self.context, {}, np.random.default_rng(0))
        return np.concatenate([np.asarray(block, dtype=np.float64).ravel() for block in answer.vector.values()])


# ---- the states ------------------------------------------------------------------------------------------------------


def prepared(model: TopicModel, words: tuple[str, ...], rng: np.random.Generator) -> State:
    """A state that a malicious coordinator may show: finite, of the right shape, and sensitive to the last bit of a number."""
    state = model.start(words, rng)
    if "words" in state:  # topics of a factorisation in pairs that hardly differ: rounding decides which of two a document has
        start = state["weights"]
        factor = 10.0 ** rng.uniform(-_MOST_COUNTED, 0, start.shape) * rng.integers(0, 2, start.shape)
        odd = factor[1::2]
        odd[...] = factor[::2][: len(odd)] * (1.0 + 1e-15 * rng.integers(-4, 5, odd.shape))
        return {**state, "weights": factor.astype(start.dtype)}
    if "weights" in state:
        return {**state, "weights": _weights(cast("NeuralTopicModel", model), state["weights"], rng)}
    # words of extreme frequencies, and pairs of equal topics, of which neither is likelier
    start = state["counts"]
    table = np.broadcast_to(10.0 ** rng.uniform(0, _MOST_COUNTED, (1, start.shape[1])), start.shape).copy()
    table *= rng.integers(0, 2, start.shape)
    odd = table[1::2]
    odd[...] = table[::2][: len(odd)]
    # in the first step some models read no table
    return {**state, "counts": table.astype(start.dtype), "step": state["step"] + 1}


def _weights(model: NeuralTopicModel, start: Array, rng: np.random.Generator) -> Array:
    """The second layer's sums cancel, and their rounding errors choose one of two topics, so a whole row may change."""
    flat = start.copy()
    parts = network_shape(flat, model).views(flat)
    for read in {"words", "embedding"} & parts.keys():
        parts[read][...] = 0
    parts["words_bias"][...] = rng.uniform(0, 3, model.hidden)
    inward = np.log1p(np.exp(parts["words_bias"].astype(np.float64)))
    inner = rng.standard_normal(parts["inner"].shape)
    size, loud = _LOUD[model.dtype]
    parts["inner"][...] = size * (inner - np.outer(inward, inward @ inner) / (inward @ inward))
    heads = loud * rng.standard_normal(parts["head"].shape)
    odd = heads[1::2]
    odd[...] = -heads[::2][: len(odd)]  # what all hidden numbers have in common cancels
    parts["head"][...] = heads
    return flat


def attack(view: AdversaryView, effort: Effort) -> float | None:
    """Takes the largest distance; None where no sum has a document."""
    return max(view.question, default=None)


def judge(guess: float | None, truth: GroundTruth) -> Score:
    """Compares the distance with the stated sensitivity. Nothing is estimated: a larger distance is a counterexample."""
    stated: StatedSensitivity = truth.answer
    if guess is None:
        return Score({FARTHEST: Estimate(float("nan"), 0.0, 0.0, 0.0)})
    value = guess / stated.sensitivity
    all_turned = 2.0 * stated.owners - 1.0  # every bounded row points the other way as soon as one is left out
    return Score({FARTHEST: Estimate(value, value / (1.0 + ALLOWANCE), value, max(value, all_turned))})


ATTACK = Attack(
    name="prepared_weights",
    title="Whether neighbouring sums are farther apart than the noise is sized for",
    citation=(
        "our own: a row that changes with the others beside it escapes its clip; Casacuberta et al. 2022 (arXiv 2207.10635) on "
        "sums in floating point whose sensitivity is not what a library says"
    ),
    cost="seconds on one core for three hundred sums of forty documents each",
    given=(
        "weights of its choice in place of the model's; all documents of a party, that all of them take part, and the sum "
        "before noise is added"
    ),
    needs=(REQUEST,),
    models=("lda", "lda-vi", "prodlda", "neural-lda", "combined-tm", "zeroshot-tm", "nmf"),
    measures={FARTHEST: "sensitivity that the terms state"},
    attack=attack,
    judge=judge,
    efforts=(DOCUMENTS, STATES),
    pose=pose,
    limits=(
        "processors, numbers of threads and versions of libraries other than those of this audit, which may round otherwise",
        "states other than the few that were drawn, and sums of as many documents as parties really hold",
        "the noise itself, which the attack many_run_epsilon tests",
    ),
    remark=(
        "It tests no epsilon. Noise hides one document only if neighbouring sums are no farther apart than the sensitivity "
        "that sized the noise: a distance above 1 refutes that, a distance of 1 is within the bound. Where the terms state no "
        "sensitivity, 1 replaces it."
    ),
)
