"""What a party can do without the others: train on its own documents only, and judge both models on them.

Nothing here leaves the party. The figures are for its own store, to show it what taking part is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from securetm.agreement import Agreement
from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array, Cohort, RoundContext, State, Terms, TopicModel
from securetm.entropy import OperatingSystem
from securetm.federation.documents import PartyDocuments
from securetm.federation.questions import TOP_WORDS
from securetm.federation.store import PartyStore
from securetm.mechanisms.sampling import ShuffledBatches
from securetm.models.quality import diversity, document_npmi, perplexity_with_interval, top_words

OnRound = Callable[[int, int], None]


def train_alone(agreement: Agreement, name: str, documents: Any, rounds: int, store: PartyStore, on_round: OnRound) -> State:
    """Run by a party for itself: as many rounds as the federation had, the same settings and start, its own documents."""
    plan, model = agreement.plan, agreement.model
    state = model.start(documents.vocabulary, np.random.default_rng(plan.seed))
    memory: dict[str, Array] = {}
    for number in range(rounds):
        query = model.query(model.for_party(state, name))  # with as many topics as it has in the federation
        context = RoundContext(Cohort(b"", number, ("alone",), seed=plan.seed), OperatingSystem(), store)
        clipped_sum = ClippedRowSum(query.terms)
        rng = np.random.default_rng([plan.seed, number])
        query.answer(_batch(documents, query.terms, context), clipped_sum, memory, rng)
        state = model.update(state, Answer(clipped_sum.blocks()))
        on_round(number + 1, rounds)
    return state


def judge(model: TopicModel, state: State, documents: PartyDocuments, seed: int) -> dict[str, float]:
    """Run by a party for itself: a model's quality on this party's own documents."""
    assert documents.agreed is not None
    topics = model.topics(state)
    return {
        "npmi": float(np.mean(document_npmi(top_words(topics, TOP_WORDS), documents.agreed.counts))),
        "diversity": float(diversity(top_words(topics, 25))),
        **perplexity_with_interval(*held_out_likelihood(model, state, documents, seed)),
    }


def held_out_likelihood(model: TopicModel, state: State, documents: PartyDocuments, seed: int) -> tuple[Array, Array]:
    """Run by a party for itself: log-likelihoods of the unseen halves of its held-out documents, and their words."""
    assert documents.held_out is not None
    seen, unseen = documents.held_out.halves(seed)
    return np.asarray(model.log_likelihood(state, seen, unseen)), np.asarray(unseen.counts.sum(axis=1)).ravel()


def prevalence(model: TopicModel, state: State, documents: PartyDocuments) -> Array:
    """Run by a party for itself: how much of its documents each topic takes."""
    assert documents.agreed is not None
    shares: Array = model.infer(state, documents.agreed).sum(axis=0) / max(len(documents.agreed), 1)
    return shares


def keep_figures(store: PartyStore, whose: str, figures: Mapping[str, float]) -> None:
    """Into the party's own store."""
    for name, value in figures.items():
        store.later("INSERT OR REPLACE INTO figures VALUES (?, ?)", f"{whose} {name}", value)
    store.keep()


def kept_figures(store: PartyStore, whose: str) -> dict[str, float]:
    """Out of the party's own store."""
    found = store.rows("SELECT name, value FROM figures WHERE name LIKE ?", f"{whose} %")
    return {name.removeprefix(f"{whose} "): float("nan") if value is None else float(value) for name, value in found}


def _batch(documents: Any, terms: Terms, context: RoundContext) -> Any:
    return ShuffledBatches().on_documents(documents, terms, context)
