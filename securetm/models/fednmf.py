"""FedNMF: parties factorise their own documents by gradient steps and answer with the difference of their weights.

It is Algorithm 1 of Si et al. (2022), with and without mutual information. Its answer is one row of a whole party; that of
`nmf` is a row for each document.

A critic scores every document of a batch beside the topic weights of every document of it, which gives the SMILE bound on their
mutual information (Song and Ermon 2020). It couples the documents of a batch. Products run in a fixed order on one thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Answer, Array, Memory, Public, State
from securetm.data_classes import dataclass
from securetm.errors import BrokenPromise
from securetm.models.batches import places_among, shuffled
from securetm.models.estimator import Count, Finite, Part
from securetm.models.fixed_order import product, product_transposed
from securetm.models.gradients import EpochsQuery, FlatLayers, ServerOptimiser
from securetm.models.mixed_topics import Bags
from securetm.models.nmf import FactoredTopics, Weighting, of_length_one, random_topics
from securetm.settings import Limit

FIRST, SECOND = 32, 256  # units of the critic's two hidden layers


@dataclass(frozen=True)
class CriticShape(FlatLayers):
    """The places of a critic's layers in a flat vector."""

    words: int
    topics: int

    @cached_property
    def parts(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return (
            ("words", (self.words, FIRST)), ("topics", (self.topics, FIRST)), ("first_bias", (FIRST,)),
            ("inner", (FIRST, SECOND)), ("second_bias", (SECOND,)), ("out", (SECOND, 1)), ("out_bias", (1,)),
        )  # fmt: skip

    def fresh(self, rng: np.random.Generator) -> Array:
        """Weights to begin with, by Glorot's rule; biases are zero."""
        flat = np.zeros(self.size, np.float32)
        for name, layer in self.views(flat).items():
            if not name.endswith("bias"):
                bound = math.sqrt(6.0 / sum(layer.shape))
                layer[...] = rng.uniform(-bound, bound, layer.shape)
        return flat


class WordRows(NamedTuple):
    """Some documents as lists of words and their weights."""

    bags: Bags
    weights: Array  # float32, one for each word of each document
    rows: Array  # which documents


def smile(shape: CriticShape, flat: Array, documents: WordRows, topics: Array, tau: float) -> tuple[Array, Array]:
    """The gradients of the bound on a batch in the critic's weights and in the documents' topic weights, which are `topics`."""
    layer, count = shape.views(flat), len(topics)
    of_words = _product(documents, layer["words"])
    of_topics = product(topics, layer["topics"]) + layer["first_bias"]
    first = np.maximum((of_words[:, None, :] + of_topics[None, :, :]).reshape(count * count, FIRST), 0)
    second = np.maximum(product(first, layer["inner"]) + layer["second_bias"], 0)
    scores = (product(second, layer["out"]) + layer["out_bias"]).reshape(count, count).astype(np.float64)
    out = slopes_of_bound(scores, tau).astype(np.float32).reshape(-1, 1)
    back = np.where(second > 0, out * layer["out"].T, np.float32(0))
    inner = np.where(first > 0, product_transposed(back, layer["inner"]), np.float32(0)).reshape(count, count, FIRST)
    by_document, by_topics = inner.sum(axis=1), inner.sum(axis=0)
    gradient = np.empty_like(flat)
    part = shape.views(gradient)
    part["words"][...] = 0
    _add_transposed(documents, by_document, part["words"])
    part["topics"][...] = product(np.ascontiguousarray(topics.T), by_topics)
    part["first_bias"][...] = by_topics.sum(axis=0)
    part["inner"][...] = product(np.ascontiguousarray(first.T), back)
    part["second_bias"][...] = back.sum(axis=0)
    part["out"][...] = product(np.ascontiguousarray(second.T), out)
    part["out_bias"][...] = out.sum(axis=0)
    return gradient, product_transposed(by_topics, layer["topics"])


def slopes_of_bound(scores: Array, tau: float) -> Array:
    """The slope of the bound in each score: row i is document i, column j the topic weights of document j.

    A document's score beside its own topic weights counts up to tau, too. The authors leave it without a limit: then the critic
    grows until its numbers overflow, and the bound with it.
    """
    count, own = len(scores), np.eye(len(scores), dtype=bool)
    each = np.where(own, 0.0, np.exp(np.clip(scores, -tau, tau)))
    slopes = np.where(np.abs(scores) < tau, -each / each.sum(), 0.0)
    slopes[own] = (scores[own] < tau) / count
    return slopes


@njit(cache=True)
def _product(documents: WordRows, table: Array) -> Array:
    """The documents' rows of words, times a table with a row for each word."""
    (ends, words, _), weights, rows = documents
    out = np.zeros((len(rows), table.shape[1]), table.dtype)
    for row in range(len(rows)):
        for i in range(ends[rows[row]], ends[rows[row] + 1]):
            for z in range(table.shape[1]):
                out[row, z] += weights[i] * table[words[i], z]
    return out


@njit(cache=True)
def _add_transposed(documents: WordRows, right: Array, out: Array) -> None:
    """Adds the transpose of the documents' rows of words, times a table with a row for each document."""
    (ends, words, _), weights, rows = documents
    for row in range(len(rows)):
        for i in range(ends[rows[row]], ends[rows[row] + 1]):
            for z in range(right.shape[1]):
                out[words[i], z] += weights[i] * right[row, z]


@njit(cache=True)
def _subtract(documents: WordRows, table: Array) -> None:
    """Takes the documents' rows of words off a table of documents x words."""
    (ends, words, _), weights, rows = documents
    for row in range(len(rows)):
        for i in range(ends[rows[row]], ends[rows[row] + 1]):
            table[row, words[i]] -= weights[i]


_MINE = "fednmf/"  # in the party's memory, beside what others keep there
_PULL = 30.0  # the longest gradient of the mutual information in a document's topic weights, times the batch's documents
_MOST = np.float32(1e6)  # a larger weight of a word in a topic is clamped: a coordinator may send anything
Weight = Annotated[float, Limit(lambda weight: 0 <= weight < np.inf, "must be 0 or above, and finite")]
Bound = Annotated[float, Limit(lambda bound: 0 < bound <= 50, "must be above 0 and at most 50")]


@dataclass(frozen=True)
class FedNMF(ServerOptimiser, FactoredTopics):
    """Topics that fit all parties' documents, learned by epochs of gradient steps at each party.

    The loss of a batch is the mean squared distance of its documents from what their topic weights give, less
    `mutual_information` times the SMILE bound on the mutual information of the two. One step moves topics, the documents' topic
    weights and the critic, all from the same point; what would be negative becomes 0. Topic weights stay in the party's memory.
    A document that is new begins with the weights that are nearest to it.

    No step can make numbers grow without bound: none is longer than the curvature of the squared distance allows, and the
    gradients of the mutual information are clipped.
    """

    weighting: Weighting = "counts"  # of a document's words: counts, log (of 1 + count) or l2 (counts over their row's length)
    mutual_information: Weight = 0.1  # lambda, its weight in the loss; 0: no critic is learned or sent
    tau: Bound = 5.0  # the critic's scores are clipped to -tau..tau where a document meets others' topic weights
    local_epochs: Count = 5  # at each party in a round
    batch: Count = 16  # documents in a step
    learning_rate: Finite = 0.3  # of a step of topics and topic weights
    critic_rate: Part = 0.05  # of a step of the critic
    name: ClassVar[str] = "fednmf"
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 50

    @property
    def starts_public(self) -> bool:
        return True

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Random topics and a random critic, from the public seed."""
        topics = random_topics(self.n_topics, len(vocabulary), rng).astype(np.float32).ravel()
        critic = CriticShape(len(vocabulary), self.n_topics).fresh(rng) if self.mutual_information else topics[:0]
        weights = np.concatenate([topics, critic])
        return {"weights": weights, "step": np.zeros(1, dtype=np.int64), **self.server_moments(weights)}

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """The public topics beside a random critic. No answer has noise, so nothing else of them is kept."""
        fresh = self.start(vocabulary, rng)
        topics = of_length_one(public.topics, self.n_topics).astype(np.float32).ravel()
        return {**fresh, "weights": np.concatenate([topics, fresh["weights"][len(topics) :]])}

    def query(self, state: State) -> EpochsQuery:
        return EpochsQuery(self, state)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one mean difference, by the server's optimiser; no topic has a negative weight."""
        after = {**state, "step": state["step"] + 1}
        count = float(answer.total["documents"][0]) if answer.total else 0.0
        if answer.total is None or count <= 0:
            return after
        moved = self.server_step(state, answer.total["difference"] / count)
        return {**after, **moved, "weights": self.projected(moved["weights"])}

    def for_party(self, state: State, party: str) -> State:
        return {name: state[name] for name in ("weights", "step")}

    def factor(self, state: State) -> Array:
        return of_length_one(self.split(state["weights"])[0], self.n_topics)

    def frequencies(self, state: State) -> Array:
        """The mean of all topics: what else the parties' words are is not asked."""
        found: Array = self.topics(state).mean(axis=0)
        return found

    def split(self, weights: Array) -> tuple[Array, Array]:
        """Topics (topics x words) and the critic's weights, as views; the vocabulary's size follows from their number."""
        none, one = (0, 0) if not self.mutual_information else (CriticShape(n, self.n_topics).size for n in (0, 1))
        words, left = divmod(len(weights) - none, self.n_topics + one - none)
        if words < 1 or left:
            raise BrokenPromise("weight vector", len(weights), none + max(words, 1) * (self.n_topics + one - none))
        return weights[: self.n_topics * words].reshape(self.n_topics, words), weights[self.n_topics * words :]

    def step(self, weights: Array, documents: WordRows, topic_weights: Array) -> None:
        """One step on a batch: changes the weights and the batch's topic weights in place."""
        topics, flat = self.split(weights)
        count, rate = len(topic_weights), self.learning_rate
        residual = product(topic_weights, topics)
        _subtract(documents, residual)
        half = np.float32(2.0 / count)
        for_topics = product(np.ascontiguousarray(topic_weights.T), residual) * half
        for_weights = product_transposed(residual, topics) * half
        # The trace of a curvature is at least its largest value: no step overshoots by more than it came.
        topics_rate = min(rate, count / (2.0 * float(np.square(topic_weights).sum()) + 1e-30))
        weights_rate = min(rate, count / (2.0 * float(np.square(topics).sum()) + 1e-30))
        if self.mutual_information and count > 1:
            critic, pull = smile(CriticShape(topics.shape[1], self.n_topics), flat, documents, topic_weights, self.tau)
            for_weights -= np.float32(self.mutual_information) * _clipped_rows(pull, _PULL / count)
            flat += np.float32(self.critic_rate) * _clipped_rows(critic[None, :], 1.0)[0]
        np.maximum(topics - np.float32(topics_rate) * for_topics, 0, out=topics)
        np.maximum(topic_weights - np.float32(weights_rate) * for_weights, 0, out=topic_weights)

    def trained(self, state: State, documents: Any, memory: Memory, rng: np.random.Generator) -> Array:
        """The weights after the local epochs of one party. The documents' topic weights go on from those in memory."""
        weights = self.projected(state["weights"])
        topics = self.split(weights)[0]
        held = self.read(documents, topics.shape[1])
        nearest = self.factored(of_length_one(topics, self.n_topics), held)
        kept = TopicWeights.recalled(memory, held.names(documents.keys), nearest.topics.astype(np.float32))
        values = nearest.weights.astype(np.float32)
        for rows in shuffled(len(documents), self.batch, self.local_epochs, rng):
            found = kept.weights[rows]
            self.step(weights, WordRows(held.bags, values, rows), found)
            kept.weights[rows] = found
        kept.keep(memory)
        return weights

    def projected(self, weights: Array) -> Array:
        """A copy of the weights, finite and clamped, without a negative one in a topic."""
        found: Array = np.clip(np.nan_to_num(weights), -_MOST, _MOST).astype(np.float32)
        topics = self.split(found)[0]
        np.maximum(topics, 0, out=topics)
        return found


@dataclass(frozen=True)
class TopicWeights:
    """The topic weights of a party's documents, by the documents' names. They stay in its memory."""

    names: Array
    weights: Array

    @classmethod
    def recalled(cls, memory: Memory, names: Array, fresh: Array) -> Self:
        """The weights of these documents: those in the memory, and `fresh` ones of documents that are new."""
        known = memory.get(_MINE + "names", names[:0])
        if len(known) and memory[_MINE + "weights"].shape[1] == fresh.shape[1]:
            met, place = places_among(known, names)
            fresh[met] = memory[_MINE + "weights"][place]
        return cls(names, fresh)

    def keep(self, memory: Memory) -> None:
        """Stores these weights in the memory, beside those of documents that took no part this time."""
        known = memory.get(_MINE + "names", self.names[:0])
        others = ~np.isin(known, self.names)
        kept = [memory[_MINE + "weights"][others]] if others.any() else []  # of another number of topics, if none is there
        memory[_MINE + "weights"] = np.concatenate([self.weights, *kept])
        memory[_MINE + "names"] = np.concatenate([self.names, known[others]])


def _clipped_rows(rows: Array, most: float) -> Array:
    """Rows that are no longer than `most`; one that is not finite becomes zero."""
    lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1, keepdims=True))
    scales = np.where(np.isfinite(lengths), np.minimum(1.0, most / np.maximum(lengths, 1e-300)), 0.0)
    return np.where(scales > 0, rows * scales, 0.0).astype(np.float32)
