"""The smallest honest query of each of the six kinds that the contracts must carry.

They learn nothing worth knowing: they show that the types fit, and give the laws something to pass and to catch.
"""

from __future__ import annotations

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
    Domain,
    Memory,
    Needs,
    Query,
    State,
    Terms,
    TopicModel,
    Unit,
)
from securetm.testing.few_documents import WORDS

TOPICS = 3


# ---- 1: one row per document -----------------------------------------------------------------------------------------


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


# ---- 2: one loss per document ----------------------------------------------------------------------------------------


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


@dataclass(frozen=True, eq=False)
class LinearGradient:
    """How a linear guess of the length of a document should change, with the number of documents beside the gradient."""

    weights: Array

    @property
    def terms(self) -> Terms:
        return Terms((Block("gradient", self.weights.shape), Block("documents", (1,))), bits=64)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        words = documents.counts.astype(float)
        lengths = np.log1p(np.asarray(words.sum(axis=1)).ravel())
        losses = SquaredErrors(words, words @ self.weights - lengths)
        clipped_sum.add_losses(losses, np.arange(len(documents)), np.ones((len(documents), 1)))


# ---- 3: integer counts, with memory at the party -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TopicCounts:
    """How often each word is assigned to each topic; every token's topic is remembered, and half of them move each time."""

    preference: Array  # topics x words

    @property
    def terms(self) -> Terms:
        return Terms((Block("counts", self.preference.shape),), domain=Domain.INTEGER, bits=64)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        tokens, ends = documents.tokens, documents.token_ends
        before = memory.get("assignments", np.full(len(tokens), -1))
        parts = zip(documents.keys, np.split(tokens, ends[:-1]), np.split(before, ends[:-1]), strict=True)
        memory["assignments"] = np.concatenate([self._move(*part) for part in parts])
        document = np.repeat(np.arange(len(documents)), np.diff(ends, prepend=0))
        column = memory["assignments"] * self.preference.shape[1] + tokens
        ones = np.ones(len(tokens), np.int64)
        clipped_sum.add(
            sparse.csr_array((ones, (document, column)), (len(documents), self.preference.size)), np.arange(len(documents))
        )

    def _move(self, key: np.uint64, tokens: Array, before: Array) -> Array:
        rng = np.random.default_rng(int(key))  # of the document, not of its place: where it is computed does not matter
        drawn = (rng.random((len(tokens), 1)) < np.cumsum(self.preference, axis=0)[:, tokens].T).argmax(axis=1)
        return np.where((before < 0) | (rng.random(len(tokens)) < 0.5), drawn, before)


# ---- 4: a party's whole model difference, one row of unit "party" ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LocalEpochs:
    """What several epochs on a party's own documents change in its copy of the linear model."""

    weights: Array
    epochs: int = 3

    @property
    def terms(self) -> Terms:
        return Terms((Block("difference", self.weights.shape),), bits=64, unit=Unit.PARTY)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        words = documents.counts.toarray().astype(float)
        lengths = np.log1p(words.sum(axis=1))
        local = self.weights.copy()
        for _ in range(self.epochs):
            local -= 0.01 * (words @ local - lengths) @ words / len(words)
        clipped_sum.add((local - self.weights)[None, :], np.zeros(1, dtype=np.int64))


# ---- 5: each party's own vector, ragged, and another question to each party --------------------------------------------


@dataclass(frozen=True, eq=False)
class OwnTopics:
    """The party's own words beside those of the topics it was asked about: as many rows as it was asked for."""

    asked: Array

    @property
    def terms(self) -> Terms:
        layout = (Block("topics", (TOPICS, WORDS)),)
        return Terms(layout, needs=Needs.EACH, ragged=True, bits=64, unit=Unit.PARTY)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        sums = np.asarray(documents.counts.sum(axis=0), dtype=float).ravel()
        clipped_sum.add(np.outer(self.asked + 1.0, sums), np.zeros(1, dtype=np.int64))


@dataclass(frozen=True)
class Matching(TopicModel):
    """A model that asks every party for other topics: what it keeps of one party travels to that party only."""

    name: ClassVar[str] = "matching"

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        return {"topics": np.full((TOPICS, len(vocabulary)), 1 / len(vocabulary)), "asked": np.arange(TOPICS)}

    def query(self, state: State) -> Query:
        return OwnTopics(state["asked"])

    def update(self, state: State, answer: Answer) -> State:
        rows = np.vstack([blocks["topics"] for blocks in answer.each.values()])[:TOPICS] + 1e-3
        asked = {f"asked/{party}": np.arange(1 + n % TOPICS) for n, party in enumerate(answer.survivors)}
        return {"topics": rows / rows.sum(axis=1, keepdims=True), "asked": state["asked"], **asked}

    def for_party(self, state: State, party: str) -> State:
        return {"asked": state.get(f"asked/{party}", state["asked"])}

    def topics(self, state: State) -> Array:
        return state["topics"]

    def infer(self, state: State, documents: Any) -> Array:
        return explained(documents.counts.toarray(), state["topics"])

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        return predicted(self.infer(state, seen), state["topics"], unseen)


# ---- 6: about the corpus alone -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lengths:
    """How many documents there are of each length, the longest together: it does not depend on any model."""

    bins: int = 8

    @property
    def terms(self) -> Terms:
        layout = (Block("lengths", (self.bins,)),)
        return Terms(layout, data_only=True, domain=Domain.INTEGER, l1=1.0, l2=1.0, linf=1.0, bits=64)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        lengths = np.minimum(np.asarray(documents.counts.sum(axis=1)).ravel(), self.bins - 1)
        clipped_sum.add(np.eye(self.bins, dtype=np.int64)[lengths], np.arange(len(documents)))


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
