"""A mixture of unigrams (Nigam et al. 2000): every document has one topic, found by expectation maximisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Memory, State, Terms, TopicModel
from securetm.errors import BadSetting


@dataclass(frozen=True)
class UnigramMixture(TopicModel):
    """Each round, documents share their words out over the topics by how well each topic explains them."""

    name: ClassVar[str] = "unigram-mixture"
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 5}
    federated_rounds: ClassVar[int] = 20

    n_topics: int = 10
    smoothing: float = 0.01

    def __post_init__(self) -> None:
        if not 1 <= self.n_topics <= 1000:
            raise BadSetting("UnigramMixture", "n_topics", str(self.n_topics), "must be 1 to 1000")
        if not self.smoothing > 0:
            raise BadSetting("UnigramMixture", "smoothing", str(self.smoothing), "must be above 0")

    @property
    def most_shown_topics(self) -> int:
        return self.n_topics

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        return {"topics": rng.dirichlet(np.ones(len(vocabulary)), self.n_topics), "shares": np.ones(self.n_topics)}

    def query(self, state: State) -> WordsByTopic:
        return WordsByTopic(state)

    def update(self, state: State, answer: Answer) -> State:
        if not answer.total:
            return dict(state)
        words = np.maximum(answer.total["words"], 0.0) + self.smoothing
        return {"topics": words / words.sum(axis=1, keepdims=True), "shares": np.maximum(answer.total["documents"], 0.0) + 1.0}

    def for_party(self, state: State, party: str) -> State:
        return dict(state)

    def topics(self, state: State) -> Array:
        return state["topics"]

    def infer(self, state: State, documents: Any) -> Array:
        return posterior(state, documents)

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        chances = np.log(self.infer(state, seen) @ state["topics"])
        found: Array = np.asarray(unseen.counts.multiply(chances).sum(axis=1)).ravel()
        return found


def posterior(state: State, documents: Any) -> Array:
    """How likely each topic is for each document: documents x topics."""
    safe = np.maximum(np.nan_to_num(state["topics"]), 1e-300)
    scores = np.asarray(documents.counts @ np.log(safe).T) + np.log(np.maximum(state["shares"], 1e-300))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Array = weights / weights.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True)
class WordsByTopic:
    """Asks how often each word is expected in each topic, and how many documents have each topic."""

    state: State

    @property
    def terms(self) -> Terms:
        return Terms((Block("words", self.state["topics"].shape), Block("documents", self.state["shares"].shape)), bits=64)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        if not len(documents):
            return
        shares, counts = posterior(self.state, documents), documents.counts.toarray()
        words = (shares[:, :, None] * counts[:, None, :]).reshape(len(counts), -1)
        clipped_sum.add(np.column_stack([words, shares]), np.arange(len(counts)))
