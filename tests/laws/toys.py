"""The smallest honest query, losses and model, for mutants to spoil: so little that each fault stands alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from securetm.contracts import (
    Answer,
    Array,
    Block,
    ClippedSum,
    Documents,
    Memory,
    Query,
    State,
    Terms,
    TopicModel,
)

TOPICS = 3


# ---- one row per document --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Memberships:
    """Each document's words, shared out over the topics by how well each explains the document."""

    topics: Array

    @property
    def terms(self) -> Terms:
        return Terms((Block("words", self.topics.shape), Block("documents", (1,))), bits=64)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        counts = documents.counts.toarray()
        shares = explained(counts, self.topics)
        rows = (shares[:, :, None] * counts[:, None, :]).reshape(len(counts), self.topics.size)
        clipped_sum.add(np.column_stack([rows, np.ones(len(rows))]), np.arange(len(rows)))


def explained(counts: Array, topics: Array) -> Array:
    """The posterior of each topic given a document's words: documents x topics."""
    scores = counts @ np.log(topics).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Array = weights / weights.sum(axis=1, keepdims=True)
    return shares


# ---- one loss per document --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """Losses of a linear model: a document's gradient is its error times its words, so no row need be made."""

    words: Any
    errors: Array

    @property
    def values(self) -> Array:
        return self.errors**2 / 2

    def norms(self, owners: Array) -> Array:
        names, member = np.unique(owners, return_inverse=True)
        group = sparse.csr_array((self.errors, (member, np.arange(len(member)))), (len(names), len(member)))
        lengths: Array = np.sqrt(np.asarray((group @ self.words).power(2).sum(axis=1)).ravel())
        return lengths

    def gradient(self, weights: Array) -> Array:
        return np.asarray((weights * self.errors) @ self.words).ravel()


# ---- a whole model -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixture(TopicModel):
    """A mixture of unigrams by expectation maximisation: every document has one topic."""

    name: ClassVar[str] = "mixture"
    topic_count: int = TOPICS
    smoothing: float = 0.01

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        return {"topics": rng.dirichlet(np.ones(len(vocabulary)), self.topic_count)}

    def query(self, state: State) -> Query:
        return Memberships(state["topics"])

    def update(self, state: State, answer: Answer) -> State:
        total: Mapping[str, Array] = answer.total or {}
        words = total["words"] + self.smoothing
        return {"topics": words / words.sum(axis=1, keepdims=True)}

    def for_party(self, state: State, party: str) -> State:
        return {"topics": state["topics"]}

    def topics(self, state: State) -> Array:
        return state["topics"]

    def infer(self, state: State, documents: Documents) -> Array:
        return explained(documents.counts.toarray(), state["topics"])

    def log_likelihood(self, state: State, seen: Documents, unseen: Documents) -> Array:
        return predicted(self.infer(state, seen), state["topics"], unseen)


def predicted(shares: Array, topics: Array, unseen: Any) -> Array:
    """Each document's log-likelihood of its unseen words."""
    likelihood: Array = (unseen.counts.toarray() * np.log(shares @ topics)).sum(axis=1)
    return likelihood


# ---- mutants -----------------------------------------------------------------------------------------------------------


def spoiled(part: Any, **methods: Any) -> Any:
    """The part with other methods in place of its own: one deliberate fault."""
    mutant = copy.copy(part)
    object.__setattr__(mutant, "__class__", type(f"Spoiled{type(part).__name__}", (type(part),), methods))
    return mutant
