"""Every figure by name: what it needs, how it is computed, and its range. What several figures need is computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.word_vectors import WordVectors
from securetm.models.quality import document_npmi, perplexity_with_interval
from securetm.quality.classification import Classified, classified
from securetm.quality.coherence import c_v, embedding_coherence, window_npmi
from securetm.quality.judged_topics import JudgedTopics
from securetm.quality.similarity import (
    WeightedWords,
    closest_distances,
    document_similarity_score,
    on_common_words,
    topic_similarity_score,
)


@dataclass(frozen=True, eq=False)
class Given:
    """What figures are computed from. `lacking` says of each input that is not there why, and what to do."""

    documents: Any = None  # a corpus over its own words
    held_out: Array | None = None  # the rows of documents that nobody trained on
    vectors: WordVectors | None = None
    against: JudgedTopics | None = None
    other_seeds: Sequence[JudgedTopics] = ()
    seed: int = 0
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> Array | None:
        """The documents' labels, where there are any."""
        found: Array | None = None if self.documents is None else self.documents.labels
        return found


@dataclass(frozen=True, eq=False)
class TopicsOnDocuments:
    """Topics, and what follows from them for the documents. Everything is computed once, when a figure needs it."""

    topics: JudgedTopics
    given: Given

    @cached_property
    def shares(self) -> Array:
        """The topic weights of all documents."""
        return self.topics.shares(self.given.documents)

    @cached_property
    def classified(self) -> Classified:
        """What the topic weights say of each document's label."""
        return classified(self.shares, self.given.labels, seed=self.given.seed)

    @cached_property
    def _held(self) -> tuple[Any, Any]:
        """The seen and the unseen half of each held-out document, in the topics' own words."""
        assert self.given.held_out is not None
        known = self.given.documents.select(self.given.held_out).project(self.topics.vocabulary)
        seen, unseen = known.halves(self.given.seed)
        return seen, unseen

    @cached_property
    def unseen_words(self) -> Array:
        """The number of words to predict in each held-out document."""
        return np.asarray(self._held[1].counts.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def likelihood(self) -> Array:
        """The log-likelihood of the unseen half of each held-out document."""
        return self.topics.log_likelihood(*self._held)

    @cached_property
    def folded_likelihood(self) -> Array:
        """The same by folding in under fixed topics, which asks no model. It is what topics of any origin have."""
        return self.topics.folded().log_likelihood(*self._held)

    @cached_property
    def likelihood_by_frequencies(self) -> Array:
        """The same by the frequencies of words alone: those of all words but the unseen ones, each raised by one."""
        known = self.given.documents.project(self.topics.vocabulary)
        unseen = self._held[1].counts
        counts = np.asarray(known.counts.sum(axis=0)).ravel() - np.asarray(unseen.sum(axis=0)).ravel() + 1.0
        return np.asarray(unseen @ np.log(counts / counts.sum())).ravel()

    def rows_of(self, words: int) -> tuple[Any, Array]:
        """The documents over their own words and the topics' first words, and the places of these words in the vocabulary."""
        first, known = self.topics.first(words), self.given.documents.vocabulary
        place = {word: number for number, word in enumerate(known)}
        more = sorted({word for topic in first for word in topic if word not in place})
        place |= {word: number for number, word in enumerate(more, start=len(known))}
        wide = self.given.documents.project((*known, *more))
        return wide, np.array([[place[word] for word in topic] for topic in first])

    def moved(self, words: int) -> list[WeightedWords]:
        """Each topic's first words that have a vector, with their weights; equal weights where the topics have none."""
        vectors, topics = self.given.vectors, self.topics
        assert vectors is not None
        place = {word: number for number, word in enumerate(topics.vocabulary)}
        found = []
        for number, listed in enumerate(topics.first(words)):
            known = vectors.known(listed)
            weights = np.ones(len(known))
            if topics.weights is not None:
                weights = topics.weights[number, [place[word] for word in known]] + 1e-12
            found.append(WeightedWords(vectors.matrix(known), weights / max(weights.sum(), 1e-300)))
        return found


WORDS, DIVERSITY_WORDS = 10, 25
MOST_COMPARED = 2_000  # documents that are compared with each other for DSS: every pair of them
_Z = 1.96


@dataclass(frozen=True, eq=False)
class FigureValue:
    """A figure's value, with the ends of its 95 % interval and its value for each topic, where it has these."""

    value: float
    low: float | None = None
    high: float | None = None
    by_topic: Array | None = None


@dataclass(frozen=True)
class Figure:
    """A figure: its name in JSON and on the screen, its range, which end is better, and the inputs that it needs by name."""

    name: str
    title: str
    range: str
    better: str  # higher, lower, or nothing
    needs: tuple[str, ...]
    measure: Callable[[TopicsOnDocuments], FigureValue]


def _mean(by_topic: Array) -> FigureValue:
    return FigureValue(float(np.mean(by_topic)), by_topic=by_topic)


def _npmi_documents(judged: TopicsOnDocuments) -> FigureValue:
    documents, top = judged.rows_of(WORDS)
    return _mean(document_npmi(top, documents.counts))


def _npmi_windows(judged: TopicsOnDocuments) -> FigureValue:
    documents, top = judged.rows_of(WORDS)
    return _mean(window_npmi(top, documents.tokens, documents.token_ends))


def _c_v(judged: TopicsOnDocuments) -> FigureValue:
    documents, top = judged.rows_of(WORDS)
    return _mean(c_v(top, documents.tokens, documents.token_ends))


def _embedding_coherence(judged: TopicsOnDocuments) -> FigureValue:
    first = judged.topics.first(WORDS)
    words = sorted({word for topic in first for word in topic})
    place = {word: number for number, word in enumerate(words)}
    assert judged.given.vectors is not None
    return _mean(embedding_coherence(np.array([[place[w] for w in t] for t in first]), judged.given.vectors.matrix(words)))


def _diversity(judged: TopicsOnDocuments) -> FigureValue:
    listed = [word for topic in judged.topics.first(DIVERSITY_WORDS) for word in topic]
    return FigureValue(len(set(listed)) / len(listed))


def _accuracy(judged: TopicsOnDocuments) -> FigureValue:
    found = judged.classified
    away = _Z * float(np.sqrt(found.accuracy * (1 - found.accuracy) / len(found.labels)))
    return FigureValue(found.accuracy, max(0.0, found.accuracy - away), min(1.0, found.accuracy + away))


def _macro_f1(judged: TopicsOnDocuments) -> FigureValue:
    return FigureValue(judged.classified.macro_f1)


def _held_out(judged: TopicsOnDocuments) -> FigureValue:
    found = perplexity_with_interval(judged.likelihood, judged.unseen_words)
    return FigureValue(found["held_out"], found["held_out_low"], found["held_out_high"])


def _folded(judged: TopicsOnDocuments) -> FigureValue:
    found = perplexity_with_interval(judged.folded_likelihood, judged.unseen_words)
    return FigureValue(found["held_out"], found["held_out_low"], found["held_out_high"])


def _tss(judged: TopicsOnDocuments) -> FigureValue:
    assert judged.given.against is not None
    mine, other = on_common_words(judged.topics, judged.given.against)
    return FigureValue(topic_similarity_score(other, mine))


def _dss(judged: TopicsOnDocuments) -> FigureValue:
    assert judged.given.against is not None
    rows = np.arange(len(judged.shares))
    if len(rows) > MOST_COMPARED:
        rows = np.sort(np.random.default_rng(judged.given.seed).choice(rows, MOST_COMPARED, replace=False))
    true = judged.given.against.shares(judged.given.documents.select(rows))
    return FigureValue(document_similarity_score(true, judged.shares[rows]))


def _amwmd(judged: TopicsOnDocuments) -> FigureValue:
    assert judged.given.against is not None
    others = TopicsOnDocuments(judged.given.against, judged.given).moved(WORDS)
    mine = [one for one in judged.moved(WORDS) if len(one.weights)]
    distances = closest_distances([one for one in others if len(one.weights)], mine) if mine else np.zeros(0)
    return FigureValue(float(distances.sum()) if len(distances) else float("nan"), by_topic=distances)


DOCUMENTS, ORDER, VECTORS, WEIGHTS, LABELS = "documents", "order", "vectors", "weights", "labels"
HELD_OUT, MODEL_OF_WORDS, AGAINST, AGAINST_WEIGHTS = "held_out", "model_of_words", "against", "against_weights"

FIGURES = (
    Figure("npmi_documents", "NPMI by documents", "-1 to 1", "higher", (DOCUMENTS,), _npmi_documents),
    Figure("npmi_windows", "NPMI by windows of 10", "-1 to 1", "higher", (DOCUMENTS, ORDER), _npmi_windows),
    Figure("c_v", "c_v by windows of 110", "0 to 1", "higher", (DOCUMENTS, ORDER), _c_v),
    Figure("embedding_coherence", "coherence by vectors", "-1 to 1", "higher", (VECTORS,), _embedding_coherence),
    Figure("diversity", "diversity", "0 to 1", "higher", (), _diversity),
    Figure(
        "held_out",
        "held-out perplexity",
        "1 or more",
        "lower",
        (WEIGHTS, DOCUMENTS, HELD_OUT, MODEL_OF_WORDS),
        _held_out,
    ),
    Figure("held_out_folded", "  topics folded in", "1 or more", "lower", (WEIGHTS, DOCUMENTS, HELD_OUT), _folded),
    Figure("accuracy", "accuracy of a classifier", "0 to 1", "higher", (WEIGHTS, DOCUMENTS, LABELS), _accuracy),
    Figure("macro_f1", "macro F1 of a classifier", "0 to 1", "higher", (WEIGHTS, DOCUMENTS, LABELS), _macro_f1),
    Figure("tss", "TSS to the other topics", "0 or more", "higher", (AGAINST, WEIGHTS, AGAINST_WEIGHTS), _tss),
    Figure("dss", "DSS to the other topics", "0 or more", "lower", (AGAINST, WEIGHTS, AGAINST_WEIGHTS, DOCUMENTS), _dss),
    Figure("amwmd", "AMWMD to the others", "0 or more", "lower", (AGAINST, VECTORS), _amwmd),
)
