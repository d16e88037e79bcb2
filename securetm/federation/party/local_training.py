"""Trains a model on one party's documents alone, and judges that model and the shared one on them.

Nothing here leaves the party. It keeps the figures in its own store, to see whether taking part was worth it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, Memory, State, TopicModel
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.questions import TOP_WORDS
from securetm.federation.store import PartyStore
from securetm.mechanisms.batch_draws import batch_rows
from securetm.models.quality import diversity, document_npmi, perplexity_with_interval, top_words
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
    """The state after the rounds of these numbers over these documents alone."""
    for number in numbers:
        query = model.query(model.for_party(state, name))  # with as many topics as it has in the federation
        clipped_sum, batch = ClippedRowSum(query.terms), query.terms.batch
        drawn = (
            documents.select(batch_rows(np.asarray(documents.keys), batch, number, seed))
            if batch and len(documents)
            else documents
        )
        query.answer(drawn, clipped_sum, memory, np.random.default_rng([seed, number]))
        state = model.update(state, Answer(clipped_sum.blocks()))
        on_round(number + 1, len(numbers))
    return state


def judge(model: TopicModel, state: State, documents: PartyDocuments, seed: int) -> dict[str, float]:
    """Measures the quality of a model on this party's documents."""
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
    """Returns the share of this party's documents that each topic takes."""
    assert documents.agreed is not None
    shares: Array = model.infer(state, documents.agreed).sum(axis=0) / max(len(documents.agreed), 1)
    return shares


def keep_figures(store: PartyStore, whose: str, figures: Mapping[str, float]) -> None:
    """Writes figures into the party's store."""
    for name, value in figures.items():
        store.later("INSERT OR REPLACE INTO figures VALUES (?, ?)", f"{whose} {name}", value)
    store.keep()


def kept_figures(store: PartyStore, whose: str) -> dict[str, float]:
    """Reads figures from the party's store."""
    found = store.rows("SELECT name, value FROM figures WHERE name LIKE ?", f"{whose} %")
    return {name.removeprefix(f"{whose} "): float("nan") if value is None else float(value) for name, value in found}
