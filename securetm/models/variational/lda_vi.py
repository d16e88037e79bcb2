"""Latent Dirichlet allocation by variational inference: documents give the counts that they expect of words in topics.

It is not a federation and knows no privacy; what it asks of documents it asks through a query (Blei, Ng and Jordan 2003;
Hoffman, Blei and Bach 2010).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma

from securetm.contracts import Answer, Array, Block, ClippedSum, Memory, State, Terms
from securetm.errors import BrokenPromise, check_setting
from securetm.models.estimator import Estimator, check_kinds
from securetm.models.gibbs.draws import MOST_TOPICS, on_ranges
from securetm.models.gibbs.lda_documents import LdaDocuments
from securetm.models.noisy_counts import NoisedCounts, above_noise, told_to_parties
from securetm.models.variational.lda_vi_kernels import expected, lengths_of, settle

_START = 100.0  # shape of the random counts that set topics apart at first: about 1 each, give or take a tenth
_MOST = 1e15  # no table counts more
_LEAST = 1e-100  # of a word's chance beside its best topic's


@dataclass(frozen=True)
class VariationalLDA(Estimator):
    """LDA whose answer is a sum over documents: fields are public settings, all that it learns is in the state.

    In a round each document finds its own topic shares under the shared topics and gives the counts that it then expects; the
    next topics are their sum. A step in batches must know how much of everything a batch was, and nobody may ask: so what was
    counted earlier fades by the public share `forgetting` as a round's sum is added. With the share of the documents that a
    round draws, counts come to those of the whole corpus; with 1 it is the batch algorithm, where each sum stands for itself.
    """

    n_topics: int = 50  # of the shared model
    alpha: float = 0.1  # of the symmetric Dirichlet prior of a document's topics
    eta: float = 0.01  # of a topic's words
    passes: int = 100  # over a document, where its shares do not settle earlier
    batch_size: int = 0  # documents that each party is asked to draw; 0: all of them
    forgetting: float = 1.0  # what share of the counts of earlier rounds a round forgets
    repeats: int = 0  # a word counts at most so often in a document as it learns; 0: as often as it stands there
    deviations: float = 2.0  # of noise, if a total has any: counts below stand for no more than their mean
    threads: int = 1  # changes nothing but the time it takes
    name: ClassVar[str] = "lda-vi"
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 50

    def __post_init__(self) -> None:
        check_kinds(self)
        check_setting(self, "n_topics", 1 <= self.n_topics <= MOST_TOPICS, f"must be 1 to {MOST_TOPICS}")
        check_setting(self, "alpha", 1e-9 <= self.alpha < math.inf, "must be at least 1e-9 and finite")
        check_setting(self, "eta", 1e-9 <= self.eta < math.inf, "must be at least 1e-9 and finite")
        check_setting(self, "passes", self.passes >= 1, "must be at least 1")
        check_setting(self, "batch_size", self.batch_size >= 0, "must be 0 (all documents) or more")
        check_setting(self, "forgetting", 0 < self.forgetting <= 1, "must be above 0 and at most 1")
        check_setting(self, "repeats", self.repeats >= 0, "must be 0 (no limit) or more")
        check_setting(self, "deviations", 0 <= self.deviations < math.inf, "must be 0 or above, and finite")
        check_setting(self, "threads", self.threads >= 1, "must be at least 1")

    # ---- contracts.TopicModel ----

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Random counts, so that topics differ. The first sum replaces them."""
        counts = rng.gamma(_START, 1.0 / _START, (self.n_topics, len(vocabulary)))
        return {"counts": counts, "step": np.zeros(1, dtype=np.int64)}

    def query(self, state: State) -> ExpectedCounts:
        """The next question: how often each word is expected to have each topic."""
        return ExpectedCounts(self, state)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one sum: earlier counts fade and the sum is added. A noised sum is also kept as it came."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        kept = 1.0 - self.forgetting if state["step"][0] else 0.0
        noised = NoisedCounts.after(state, answer.total["counts"], answer.deviation, kept)
        if noised is None:
            return {**after, "counts": kept * state["counts"] + answer.total["counts"]}
        counts = above_noise(noised.counts, self.deviations, float(np.sqrt(noised.variance)))
        return {**after, **noised.arrays(), "counts": counts}

    def for_party(self, state: State, party: str) -> State:  # noqa: ARG002 - every party gets the same
        """The counts and the step, without the noised sums that are kept for the end."""
        return told_to_parties(state)

    def topics(self, state: State) -> Array:
        """Each topic's words: their mean under the topic's Dirichlet distribution."""
        noised = NoisedCounts.kept_in(state)
        counts = noised.likely() if noised else self.dirichlet(state)
        shares: Array = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares under the shared topics, as LDA finds them."""
        by_word = self._by_word(state)
        alpha = np.full(self.n_topics, self.alpha)
        return LdaDocuments.of(documents.counts, len(by_word)).shares(by_word, alpha, self.passes, self.threads)

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given the topic shares of its seen words."""
        by_word, shares = self._by_word(state), self.infer(state, seen)
        return LdaDocuments.of(unseen.counts, len(by_word)).log_likelihood(by_word, shares, self.threads)

    # ---- what the query shares ----

    def dirichlet(self, state: State) -> Array:
        """The parameters of the topics' Dirichlet distributions: counts and eta."""
        if state["counts"].shape[0] != self.n_topics:
            raise BrokenPromise("table of topics", state["counts"].shape[0], self.n_topics)
        found: Array = np.clip(state["counts"], 0, _MOST) + self.eta  # a coordinator may send anything
        return found

    def counted(self, documents: Any, words: int) -> LdaDocuments:
        """The documents with repeated words limited as the settings say."""
        bags = LdaDocuments.of(documents.counts, words)
        if not self.repeats:
            return bags
        counts = np.minimum(bags.counts, self.repeats)
        return LdaDocuments(
            bags.ends, bags.words, counts, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])[bags.ends]
        )

    def _by_word(self, state: State) -> Array:
        return np.ascontiguousarray(self.topics(state).T)


@dataclass(frozen=True)
class ExpectedCounts:
    """Asks how often each word is expected to have each topic, in all documents of the round together."""

    model: VariationalLDA
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document: real numbers that add up to its length. A mechanism bounds the length."""
        return Terms((Block("counts", self.state["counts"].shape),), batch=self.model.batch_size, bits=64)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Draws and remembers nothing: each document starts from equal shares of all topics."""
        bounds = Bounds.found(self.model, self.state, self.model.counted(documents, self.state["counts"].shape[1]))
        clipped_sum.add_losses(bounds, np.arange(len(documents)), np.zeros((len(documents), 0)))


@dataclass(frozen=True)
class Bounds:
    """Minus the bound on each document's likelihood (contracts.Losses), at the shares that make it tightest.

    What a document gives to the sum is the slope of its bound in the topics' expected logarithms, and that is its expected
    counts: where shares are settled, the bound has no slope in them (Danskin's theorem). So rows are never spelled out.
    """

    bags: LdaDocuments
    chances: Array  # words x topics, the largest of each word 1
    leanings: Array  # documents x topics, the largest of each document 1
    values: Array

    @classmethod
    def found(cls, model: VariationalLDA, state: State, bags: LdaDocuments) -> Bounds:
        """The bounds after the E-step of every document."""
        chances, scale = _expected_chances(model.dirichlet(state))
        leanings, values = np.empty((len(bags), model.n_topics)), np.zeros(len(bags))
        facts = (bags.ends, bags.words, bags.counts, chances, scale, model.alpha, model.passes)
        on_ranges(bags.draw_ends, model.threads, lambda first, last: settle(first, last, *facts, leanings, values))
        return cls(bags, chances, leanings, values)

    def norms(self, owners: Array) -> Array:
        """The l2 norm of each owner's expected counts, over all its documents."""
        order = np.argsort(owners, kind="stable")
        heads = np.flatnonzero(np.diff(owners[order], prepend=owners[order[:1]] - 1))
        return lengths_of(order, np.append(heads, len(order)), *self._facts, self.leanings)

    def gradient(self, weights: Array) -> Array:
        """The weighted sum of the documents' expected counts, topics x words, flat."""
        return expected(*self._facts, self.leanings, weights.astype(np.float64)).T.ravel()

    @cached_property
    def _facts(self) -> tuple[Array, Array, Array, Array]:
        return self.bags.ends, self.bags.words, self.bags.counts, self.chances


def _expected_chances(dirichlet: Array) -> tuple[Array, Array]:
    """exp of the expected log chance of each word in each topic, words x topics, and how each word was scaled to 1 at best.

    A word's share of topics needs ratios alone, and those survive where the chances themselves are smaller than any number.
    """
    logs = np.ascontiguousarray((digamma(dirichlet) - digamma(dirichlet.sum(axis=1, keepdims=True))).T)
    scale = logs.max(axis=1)
    return np.maximum(np.exp(logs - scale[:, None]), _LEAST), scale
