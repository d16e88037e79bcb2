"""Topics that are judged: of a trained model, from a file, or of a control that saw no document. It computes no figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from securetm.contracts import Array, State, TopicModel
from securetm.models.lda.lda import LdaDocuments
from securetm.models.quality import named_topics

MOST_WORDS = 25  # of a topic; figures take the first ones of them
_ALPHA, _PASSES = 0.1, 50  # of a document's topic shares, where fixed topics have no model


@dataclass(frozen=True, eq=False)
class JudgedTopics:
    """The heaviest words of each topic, and what more is known: weights of words, and the model that gives documents topics."""

    name: str
    lists: tuple[tuple[str, ...], ...]  # heaviest words first
    vocabulary: tuple[str, ...] = ()
    weights: Array | None = None  # topics x vocabulary, rows sum to one
    model: TopicModel | None = None
    state: State | None = None

    @classmethod
    def of_weights(cls, name: str, weights: Array, vocabulary: Sequence[str]) -> JudgedTopics:
        """Topics without a model: documents get topics by folding in."""
        words = tuple(vocabulary)
        return cls(name, _lists(weights, words), words, weights / weights.sum(axis=1, keepdims=True))

    @classmethod
    def of_model(cls, name: str, model: TopicModel, state: State, vocabulary: Sequence[str]) -> JudgedTopics:
        """The topics of a trained model, which gives documents their topics itself."""
        weights, words = np.asarray(model.topics(state), dtype=np.float64), tuple(vocabulary)
        return cls(name, _lists(weights, words), words, weights, model, state)

    def __len__(self) -> int:
        return len(self.lists)

    def shortened(self, words: int) -> JudgedTopics:
        """The same topics, of which no more than so many words are known by rank."""
        return replace(self, lists=tuple(one[:words] for one in self.lists))

    def first(self, words: int) -> list[tuple[str, ...]]:
        """As many words of each topic as asked for, or as many as the shortest topic has: the same number of each."""
        most = min(words, *(len(one) for one in self.lists))
        return [one[:most] for one in self.lists]

    def shares(self, documents: Any) -> Array:
        """Each document's topic weights: documents x topics, rows sum to one."""
        known = documents.project(self.vocabulary)
        if self.model is not None:
            return np.asarray(self.model.infer(self.state, known))  # type: ignore[arg-type]  # a model has a state
        return _held(known, self.vocabulary).shares(self._by_word(), np.full(len(self), _ALPHA), _PASSES, 1)

    def log_likelihood(self, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given those that are seen."""
        given, asked = (half.project(self.vocabulary) for half in (seen, unseen))
        if self.model is not None:
            return np.asarray(self.model.log_likelihood(self.state, given, asked))  # type: ignore[arg-type]
        return _held(asked, self.vocabulary).log_likelihood(self._by_word(), self.shares(given), 1)

    def folded(self) -> JudgedTopics:
        """The same topics without their model: documents get topics by folding in."""
        return replace(self, model=None, state=None)

    @property
    def reads_whole_texts(self) -> bool:
        """Whether its model reads embeddings: these are made of all words of a document, those to be predicted too."""
        return self.model is not None and self.model.embedding_size > 0

    def _by_word(self) -> Array:
        """Words x topics. A word is impossible in no topic: each weight is raised by a thousandth of an equal share."""
        assert self.weights is not None
        size = self.weights.shape[1]
        return np.ascontiguousarray((0.999 * self.weights + 0.001 / size).T)


def _lists(weights: Array, vocabulary: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(words) for words in named_topics(weights, vocabulary, MOST_WORDS))


def _held(documents: Any, vocabulary: tuple[str, ...]) -> LdaDocuments:
    return LdaDocuments.of(documents.counts, len(vocabulary))
