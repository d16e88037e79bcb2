"""What LDA, variational LDA, NMF and `moments` share: a document mixes topics by shares.

It is their start at public topics, what a state keeps beside the model, topic shares of documents, and held-out likelihoods.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.contracts import Array, State
from securetm.errors import check_setting
from securetm.models.bags import BagDocuments, Completion
from securetm.models.estimator import Estimator
from securetm.models.noisy_counts import AT_HOME, BY_WORD, NOISED, NoisedCounts, stand_above
from securetm.models.public_knowledge import public_fits, without_public

EARLIER, WEIGHT = "earlier", "earlier_weight"  # arrays of a state: the counts of a model that it goes on from, and their weight
_KEPT = (EARLIER, WEIGHT, *NOISED, BY_WORD, AT_HOME)


@dataclass(frozen=True)
class MixedTopics(Estimator):
    """A model whose documents mix topics by shares; its fields are public settings."""

    n_topics: int = 50  # of the shared model
    threads: int = 1  # changes nothing but the time it takes

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "threads", self.threads >= 1, "must be at least 1")

    @property
    def starts_public(self) -> bool:
        """True."""
        return True

    def for_party(self, state: State, party: str) -> State:  # noqa: ARG002 - every party gets the same
        """What a question is about: no noised sums, no earlier model's counts, no public knowledge."""
        return without_kept(state)

    def fits(self, state: State, words: int) -> bool:
        """Also of a state that keeps noised sums for the end, goes on from an earlier model, or began with public topics."""
        return kept_fit(state, self.most_shown_topics, words) and super().fits(without_kept(state), words)

    def above_noise(self, state: State) -> Array | None:
        """Which numbers of the last noised sum of words in topics stand above its noise; None where no sum had any."""
        noised = NoisedCounts.kept_in(state)
        return None if noised is None else stand_above(noised.counts, np.sqrt(noised.variance))

    def by_word(self, state: State) -> Array:
        """The topics as words x topics."""
        return np.ascontiguousarray(self.topics(state).T)

    def folding(self, state: State) -> tuple[Array, int]:
        """The prior of each topic in a document, and the most passes over a document, for `infer`."""
        raise NotImplementedError

    @abstractmethod
    def completing(self, state: State) -> tuple[Array, Completion]:
        """Words x topics by which a document's other words are predicted, and what is expected of it before any is seen."""

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares under the shared topics, without random draws (CVB0 with fixed topics)."""
        by_word = self.by_word(state)
        return BagDocuments.from_counts(documents.counts, len(by_word)).shares(by_word, *self.folding(state), self.threads)

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given its seen words and how large topics are."""
        by_word, prior = self.completing(state)
        shares = prior.shares(by_word, BagDocuments.from_counts(seen.counts, len(by_word)), self.threads)
        return BagDocuments.from_counts(unseen.counts, len(by_word)).log_likelihood(by_word, shares, self.threads)


def without_kept(state: State) -> State:
    """The state without what it keeps beside the model."""
    return without_public({name: array for name, array in state.items() if name not in _KEPT})


def kept_fit(state: State, topics: int, words: int) -> bool:
    """Whether what a state, which may come from a file, keeps beside its model has the forms that it can have."""
    shapes = ((topics, words), (1,), (topics, words), (words,), (4,), (words,), (1,))
    like = {name: shape for name, shape in zip(_KEPT, shapes, strict=True) if name in state}
    whole = all(len({name in like for name in group}) == 1 for group in ((EARLIER, WEIGHT), NOISED))
    formed = all(state[name].shape == shape and state[name].dtype == np.float64 for name, shape in like.items())
    return whole and formed and (BY_WORD not in like or NOISED[0] in like) and public_fits(state, topics, words)
