"""What `nmf` and `fednmf` share: topics as non-negative rows of length 1, and what they say of documents.

It asks nothing of documents: each model has a question of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.contracts import Array, State
from securetm.errors import BrokenPromise, check_setting
from securetm.models.estimator import Estimator
from securetm.models.gibbs.document_completion import Completion
from securetm.models.gibbs.draws import on_ranges
from securetm.models.gibbs.lda_documents import LdaDocuments
from securetm.models.nmf.nmf_kernels import COUNTS, L2, LOG, overlaps, solve, weighed

WEIGHTINGS = {"counts": COUNTS, "log": LOG, "l2": L2}
MOST_TOPICS = 1000
_MOST = 1e15  # a larger weight of a word in a topic is clamped: a coordinator may send anything
_PRIOR = 2.0  # words that topics of equal shares weigh as, where a document's other words are predicted
_SIZINGS = 100  # steps of expectation maximisation
_LEAST = 1e-6  # of a word's share of a topic, in shares of all words alike: no word is impossible


@dataclass(frozen=True)
class FactoredDocuments:
    """Documents, their weighed words, their topic weights, and half the squared distance that these leave."""

    held: LdaDocuments
    weights: Array
    topics: Array  # documents x topics, no longer than the document
    losses: Array


@dataclass(frozen=True)
class FactoredTopics(Estimator):
    """A model whose topics are the rows of one non-negative factor, and a document's topic weights those of the other."""

    n_topics: int = 50  # of the shared model
    weighting: str = "l2"  # of a document's words: counts, log (of 1 + count) or l2 (counts over the length of their row)
    passes: int = 50  # over a document's topics, where their weights do not settle earlier
    background: float = 0.2  # the share of the words' own frequencies in a document's words, for likelihoods
    threads: int = 1  # changes nothing but the time it takes

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "n_topics", 1 <= self.n_topics <= MOST_TOPICS, f"must be 1 to {MOST_TOPICS}")
        check_setting(self, "weighting", self.weighting in WEIGHTINGS, f"must be one of {tuple(WEIGHTINGS)}")
        check_setting(self, "passes", self.passes >= 1, "must be at least 1")
        check_setting(self, "background", 0 < self.background < 1, "must be above 0 and below 1")
        check_setting(self, "threads", self.threads >= 1, "must be at least 1")

    def factor(self, state: State) -> Array:
        """The topics of a state: topics x words in float64, finite, not negative, and each of length 1 or 0."""
        raise NotImplementedError

    def frequencies(self, state: State) -> Array:
        """The words' own frequencies, as far as the state knows them; they sum to one."""
        raise NotImplementedError

    def prior_words(self, state: State) -> float:  # noqa: ARG002 - a model may believe topics less behind noise
        """As how many words equal shares of all topics weigh, where a document's other words are predicted."""
        return _PRIOR

    def topics(self, state: State) -> Array:
        """Each topic's words, as shares."""
        topics = self.factor(state)
        smooth = topics / np.maximum(topics.sum(axis=1, keepdims=True), _LEAST) + _LEAST / topics.shape[1]
        shares: Array = smooth / smooth.sum(axis=1, keepdims=True)
        return shares

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares: how much of the words that its topic weights give comes from each topic.

        Where no topic has a word of the document, all topics have the same share.
        """
        topics = self.factor(state)
        parts = self.factored(topics, self.read(documents, topics.shape[1])).topics * topics.sum(axis=1)
        whole = parts.sum(axis=1, keepdims=True)
        shares: Array = np.where(whole > 0, parts / np.where(whole > 0, whole, 1.0), 1.0 / self.n_topics)
        return shares

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given its seen words: as mixtures of all topics and of all words'
        frequencies. Before any word is seen, the mixture is these frequencies."""
        frequencies = self.frequencies(state)
        topics, sizes = as_frequent(self.topics(state), frequencies)
        by_word = np.ascontiguousarray(np.vstack([topics, frequencies]).T)
        sizes = np.append((1.0 - self.background) * sizes, self.background)
        shares = Completion(sizes, self.prior_words(state)).shares(by_word, self.read(seen, len(by_word)), self.threads)
        return self.read(unseen, len(by_word)).log_likelihood(by_word, shares, self.threads)

    # ---- for the queries ----

    def read(self, documents: Any, words: int) -> LdaDocuments:
        """The documents as lists of words and counts over a vocabulary of so many words."""
        return LdaDocuments.of(documents.counts, words)

    def factored(self, topics: Array, held: LdaDocuments) -> FactoredDocuments:
        """The documents with the topic weights that are nearest to them under these topics. No document depends on another."""
        weights = weighed(held.bags, WEIGHTINGS[self.weighting])
        found, losses = np.zeros((len(held), len(topics))), np.zeros(len(held))
        facts = (held.bags, weights, np.ascontiguousarray(topics.T), overlaps(topics), self.passes, found, losses)
        on_ranges(held.draw_ends, self.threads, solve, *facts)
        return FactoredDocuments(held, weights, found, losses)


def as_frequent(topics: Array, frequencies: Array) -> tuple[Array, Array]:
    """The topics and their sizes, so that together they have these frequencies of words. Rows of `topics` are shares above 0.

    Sizes are the likeliest for words of such frequencies. Then each word keeps its shares of topics, and has its frequency.
    """
    sizes = np.full(len(topics), 1.0 / len(topics))
    for _ in range(_SIZINGS):
        sizes = np.maximum(sizes * (topics @ (frequencies / (sizes @ topics))), _LEAST)
        sizes /= sizes.sum()
    joint = sizes[:, None] * topics
    joint *= frequencies / joint.sum(axis=0)
    masses = joint.sum(axis=1)
    return joint / masses[:, None], masses


def of_length_one(topics: Array, n_topics: int) -> Array:
    """Topics from a state, which may be forged: finite, not negative, and each of length 1, or 0 where nothing is left."""
    if topics.ndim != 2 or len(topics) != n_topics:
        raise BrokenPromise("table of topics", len(topics), n_topics)
    found = np.clip(np.nan_to_num(topics.astype(np.float64), nan=0.0), 0.0, _MOST)
    largest = found.max(axis=1, keepdims=True, initial=0.0)
    found = found / np.where(largest > 0, largest, 1.0)  # so that no square is too small or too large
    lengths = np.sqrt(np.square(found).sum(axis=1, keepdims=True))
    scaled: Array = np.ascontiguousarray(found / np.where(lengths > 0, lengths, 1.0))
    return scaled


def random_topics(topics: int, words: int, rng: np.random.Generator) -> Array:
    """Topics to begin with: of length 1, all words in all topics, and uneven, so that topics differ."""
    return of_length_one(rng.gamma(0.5, 1.0, (topics, words)) + 1e-3, topics)
