"""Topics together with what they are judged on: documents, vectors, other topics. It keeps what several figures need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.word_vectors import WordVectors
from securetm.quality.classification import Classified, classified
from securetm.quality.judged_topics import JudgedTopics
from securetm.quality.mover_distance import WeightedWords


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
