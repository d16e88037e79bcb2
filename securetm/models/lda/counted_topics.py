"""Models whose topics are counts of words: smoothed topics, an earlier model's counts as a prior, and predictions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from securetm.contracts import Array, Public, State
from securetm.errors import BrokenPromise, check_setting
from securetm.models.bags import Completion
from securetm.models.mixed_topics import EARLIER, WEIGHT, MixedTopics
from securetm.models.noisy_counts import NoisedCounts, behind_noise

_MOST_EARLIER = 1e12
_SPREAD = 0.1  # shape of the noise that makes new topics differ: the smaller, the fewer words stand out


def earlier_counts(state: State) -> Array | float:
    """The counts that an update adds to those of the documents; 0 where the training began anew."""
    return state[WEIGHT][0] * state[EARLIER] if EARLIER in state else 0.0


def started_from(earlier: Array, topics: int, rng: np.random.Generator) -> Mapping[str, Array]:
    """The arrays of a state that goes on from these counts. Topics beyond theirs begin as noise around word frequencies.

    Counts are clamped, since they come out of a file.
    """
    known = np.clip(np.nan_to_num(np.asarray(earlier, dtype=np.float64), nan=0.0), 0.0, _MOST_EARLIER)
    new = known.mean(axis=0) * rng.gamma(_SPREAD, 1.0 / _SPREAD, (topics - len(known), known.shape[1]))
    return {
        "counts": np.concatenate([known, new]),
        EARLIER: np.concatenate([known, np.zeros(new.shape)]),
        WEIGHT: np.ones(1),
    }


_UNSEEN = 0.5  # uses more than were found (Krichevsky and Trofimov 1981): no word is impossible
_SUREST = 1.0 - 1e-6  # of the shares as they were found: no topic excludes a word
_TINY = 1e-12


def likely_shares(counts: Array) -> Array:
    """Topics x words, summing to one: how often a use of any word is one of this word under this topic.

    Words have their totals. A word's shares of topics lie as far from those of all words as they were found, times what is not
    explained by chance (James and Stein 1961): so many uses, drawn from the shares of all words, would lie apart by one less
    than the number of topics, over the number of uses, in squares over the shares.
    """
    found = np.clip(np.nan_to_num(counts, nan=0.0), 0.0, _MOST)
    uses = found.sum(axis=0)
    topics = found.sum(axis=1) + _TINY
    usual = (topics / topics.sum())[:, None]
    apart = np.where(uses > 0, found / np.maximum(uses, _TINY) - usual, 0.0)
    squares = (np.square(apart) / usual).sum(axis=0)
    by_chance = (len(found) - 1) / np.maximum(uses, _TINY)
    believed = np.clip(1.0 - by_chance / np.maximum(squares, _TINY), 0.0, _SUREST)
    joint: Array = (uses + _UNSEEN) * (usual + believed * apart)
    joint /= joint.sum()
    return joint


MOST_TOPICS = 1 << 16  # a draw's topic is kept in two bytes
_LEAST, _MOST = 1e-9, 1e15  # a count that noise left is clamped to that range
_FIRM = 100.0  # counts of a word in a topic of a public start, on average: so many that eta hardly moves its shares


@dataclass(frozen=True)
class CountedTopics(MixedTopics):
    """A model whose state holds counts of words in topics; its fields are public settings."""

    gains_topics: ClassVar[bool] = True

    alpha: float = 0.1  # of the symmetric Dirichlet prior of a document's topics
    eta: float = 0.01  # of a topic's words

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "n_topics", 1 <= self.n_topics <= MOST_TOPICS, f"must be 1 to {MOST_TOPICS}")
        check_setting(self, "alpha", 1e-9 <= self.alpha < math.inf, "must be at least 1e-9 and finite")
        check_setting(self, "eta", 1e-9 <= self.eta < math.inf, "must be at least 1e-9 and finite")

    @abstractmethod
    def smoothed(self, state: State) -> Array:
        """The counts of a state with eta added. They are clamped: a malicious coordinator may send anything."""

    def found_counts(self, state: State) -> Array:
        """The counts of a state as they are."""
        self._check_topics(state["counts"])
        return state["counts"]

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """The public topics as counts, which the first sum replaces. Estimates from noised sums read what is public."""
        return {**self.start(vocabulary, rng), "counts": public.counts(_FIRM), **public.arrays()}

    def going_on(self, earlier: State, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """The earlier counts, as a prior of the same topics; further topics begin as noise around word frequencies."""
        return {**self.start(vocabulary, rng), **started_from(earlier["counts"], self.n_topics, rng)}

    def weighing_earlier(self, state: State, weight: float) -> State:
        """The earlier counts times the weight are added to every sum of counts."""
        return {**state, WEIGHT: np.full(1, float(weight))} if WEIGHT in state else state

    def topics(self, state: State) -> Array:
        """Each topic's words: its counts, smoothed by eta; where sums had noise, the likely counts behind it, as they are."""
        noised = NoisedCounts.kept_in(state) is not None
        counts = np.clip(state["counts"], _LEAST, _MOST) if noised else self.smoothed(state)
        shares: Array = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def completing(self, state: State) -> tuple[Array, Completion]:
        """Around topics' sizes; a learned alpha knows these."""
        by_word, found = self._predicting(state)
        alpha = self.folding(state)[0]
        return by_word, Completion.around(by_word, alpha if np.ptp(alpha) > 0 else found, float(alpha.sum()))

    def _predicting(self, state: State) -> tuple[Array, Array]:
        """Words x topics by which other words are predicted, and topics' sizes.

        Counts behind noise are likely ones already. Where words were noised at home, how often one occurs tells little of how
        sure its topics are.
        """
        if behind_noise(state):
            return self.by_word(state), self.smoothed(state).sum(axis=1)
        joint = likely_shares(self.found_counts(state))
        sizes = joint.sum(axis=1)
        return np.ascontiguousarray((joint / sizes[:, None]).T), sizes

    def _check_topics(self, counts: Array) -> None:
        if len(counts) != self.n_topics:
            raise BrokenPromise("table of topics", len(counts), self.n_topics)
