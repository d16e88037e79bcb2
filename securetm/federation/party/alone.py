"""What a party trains and judges on its own documents: a model of its own, and the shared one adapted to them.

Nothing here leaves the party, and no budget is spent: the figures say whether taking part was worth it. In an adapted model the
shared topics keep their numbers, and the party's own come after them where the model can gain topics. The shared model counts
less from stage to stage; some of the training documents are held back, and say at which stage to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import MOST_TOPICS, Answer, Array, Memory, State, TopicModel
from securetm.data_classes import dataclass, replace
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.questions import TOP_WORDS
from securetm.mechanisms.sampling import batch_rows
from securetm.models.quality import diversity, document_npmi, perplexity, perplexity_with_interval, top_words
from securetm.plans.agreement import Agreement

OnRound = Callable[[int, int], None]


def train_alone(agreement: Agreement, name: str, documents: Any, rounds: int, on_round: OnRound) -> State:
    """Trains on the party's own documents, with the settings, the start and the number of rounds of the federation."""
    seed = agreement.plan.seed
    start = agreement.model.start(documents.vocabulary, np.random.default_rng(seed))
    return trained_on(agreement.model, start, documents, range(rounds), seed, Memory(), on_round, name)


def trained_on(
    model: TopicModel,
    state: State,
    documents: Any,
    numbers: range,
    seed: int,
    memory: Memory,
    on_round: OnRound,
    name: str = "",
) -> State:
    for number in numbers:
        query = model.query(model.for_party(state, name))  # with as many topics as it has in the federation
        clipped_sum, batch = ClippedRowSum(query.terms), query.terms.batch
        drawn = documents
        if batch and len(documents):
            drawn = documents.select(batch_rows(np.asarray(documents.keys), batch, number, seed))
        query.answer(drawn, clipped_sum, memory, np.random.default_rng([seed, number]))
        state = model.update(state, Answer(clipped_sum.blocks()))
        on_round(number + 1, len(numbers))
    return state


def judge(model: TopicModel, state: State, documents: PartyDocuments, seed: int) -> dict[str, float]:
    assert documents.agreed is not None
    topics = model.topics(state)
    return {
        "npmi": float(np.mean(document_npmi(top_words(topics, TOP_WORDS), documents.agreed.counts))),
        "diversity": float(diversity(top_words(topics, 25))),
        **perplexity_with_interval(*held_out_likelihood(model, state, documents, seed)),
    }


def held_out_likelihood(model: TopicModel, state: State, documents: PartyDocuments, seed: int) -> tuple[Array, Array]:
    """Returns the log-likelihood of the unseen half of each held-out document, and how many words it has."""
    assert documents.held_out is not None
    seen, unseen = documents.held_out.halves(seed)
    return np.asarray(model.log_likelihood(state, seen, unseen)), np.asarray(unseen.counts.sum(axis=1)).ravel()


def prevalence(model: TopicModel, state: State, documents: PartyDocuments) -> Array:
    assert documents.agreed is not None
    shares: Array = model.infer(state, documents.agreed).sum(axis=0) / max(len(documents.agreed), 1)
    return shares


# Stage by stage: the weight of the shared model's documents, and how long the stage is.
STAGES = ((1.0, 1), (0.1, 1), (0.01, 2), (0.003, 3), (0.003, 3))
_FINISH = 2  # as long the model that was chosen is trained on all training documents
_ROUNDS = 10  # a stage of length 1 takes this part of the federation's rounds
_LENGTH = sum(length for _, length in STAGES) + _FINISH
# The shared model was trained on the documents that are held back here, so it predicts them better than it does others: in the
# demonstration by up to a fifth. Its perplexity counts as so many times what it is.
_SEEN = 1.25
_DOCUMENTS_A_TOPIC = 10
_HELD_BACK = 0.2  # of the training documents, to choose the stage
_SPLIT = 0x61646170  # beside the plan's seed, so that it is another split than that of held-out documents


@dataclass(frozen=True)
class Adapted:
    model: TopicModel
    state: State
    shared_topics: int  # the first ones; those after them are the party's own
    stages: int  # 0: the shared model predicts best, and was not changed
    chosen_by: tuple[float, ...]  # perplexity of the documents that were held back: of the shared model, and after each stage

    def unchanged(self, model: TopicModel, shared: State, documents: Any, seed: int) -> Adapted:
        """Returns the shared model as it is, where adapting it turned out to make it worse."""
        return Adapted(model, _whole(model, shared, documents, seed), self.shared_topics, 0, self.chosen_by)

    def facts(self) -> dict[str, Any]:
        weight = STAGES[self.stages - 1][0] if self.stages else None
        finite = [round(value, 3) if np.isfinite(value) else None for value in self.chosen_by]
        return {
            "shared_topics": self.shared_topics,
            "own_topics": len(self.model.topics(self.state)) - self.shared_topics,
            "stages": self.stages,
            "shared_weight": weight,
            "chosen_by": finite,
        }


def adapt(
    model: TopicModel, shared: State, documents: Any, rounds: int, seed: int, on_round: OnRound, own_topics: int | None = None
) -> Adapted:
    """Adapts a model that was trained for so many rounds.

    Without `own_topics`, as many are added as there are, but no more than a topic for ten documents: others would stay empty.
    """
    held = len(model.topics(shared))
    own = min(held, len(documents) // _DOCUMENTS_A_TOPIC) if own_topics is None else own_topics
    here = model
    if model.gains_topics:
        here = replace(model, n_topics=min(held + own, MOST_TOPICS))  # type: ignore[type-var]  # every model is a dataclass
    start = here.going_on(shared, documents.vocabulary, np.random.default_rng([seed, _SPLIT]))
    fit, back = documents.split(1 - _HELD_BACK, seed ^ _SPLIT)
    if not len(fit) or not back.lengths().sum():
        return Adapted(model, _whole(model, shared, documents, seed), held, 0, ())
    unit, done = max(1, -(-rounds // _ROUNDS)), 0

    def step(state: State, documents: Any, weight: float, length: int, memory: Memory) -> tuple[State, Memory]:
        nonlocal done
        numbers, done = range(done, done + length * unit), done + length * unit
        memory, begun = dict(memory), here.weighing_earlier(state, weight)
        return trained_on(here, begun, documents, numbers, seed, memory, lambda n, _: on_round(n, _LENGTH * unit)), memory

    state, memory = start, Memory()
    tried, kept = [_unseen(model, shared, back, seed)], [(start, memory)]
    for weight, length in STAGES:
        state, memory = step(state, fit, weight, length, memory)
        tried.append(_unseen(here, state, back, seed))
        kept.append((state, memory))
    fair = [tried[0] * _SEEN, *tried[1:]]  # 0 is the shared model, whose figure is known to be too good
    best = int(np.argmin([value if np.isfinite(value) else np.inf for value in fair]))
    if not best:
        return Adapted(model, _whole(model, shared, documents, seed), held, 0, tuple(tried))
    state, _ = step(kept[best][0], documents, STAGES[best - 1][0], _FINISH, kept[best][1])
    return Adapted(here, state, held, best, tuple(tried))


def rounds_of_adapting(rounds: int) -> int:
    """How many rounds it takes at most to adapt a model that was trained for so many."""
    return _LENGTH * max(1, -(-rounds // _ROUNDS))


def _whole(model: TopicModel, shared: State, documents: Any, seed: int) -> State:
    """The shared state with what a training keeps beside it, such as an optimiser's memory: only a whole state is read back."""
    if model.fits(shared, len(documents.vocabulary)):
        return shared
    return model.going_on(shared, documents.vocabulary, np.random.default_rng([seed, _SPLIT]))


def _unseen(model: TopicModel, state: State, documents: Any, seed: int) -> float:
    seen, unseen = documents.halves(seed)
    return perplexity(model.log_likelihood(state, seen, unseen), unseen.lengths())
