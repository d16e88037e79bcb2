"""Estimates counts from a table with noise of a known size. It adds no noise.

The noise's standard deviation comes with the answer, from the mechanism that added it. All here is a function of opened
answers, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import log_ndtr

from securetm.contracts import Array, State

_BEYOND = 20.0  # deviations below 0, beyond which a series is more exact than the quotient
_LEAST = 0.01  # the least share of a count's expectation: no word is impossible
_SURE = 3.0  # deviations by which a table must differ from word frequencies before any difference is believed
_NOISED = ("noised", "noised_words", "noise")  # the arrays of a state that hold noised answers; parties do not get them


def above_noise(counts: Array, deviations: float, deviation: float) -> Array:
    """Counts of topics x words for the next round. Each count below so many deviations of the noise is replaced by the mean of
    that word over all such topics, in which most of the noise averages out.

    Counts above that are kept, even where noise made them large: documents move to such a topic, and their counts are no noise.
    """
    if deviation == 0:
        return np.maximum(counts, 0)
    clear = counts > deviations * deviation
    means = np.where(clear, 0, counts).sum(axis=0) / np.maximum((~clear).sum(axis=0), 1)
    found: Array = np.where(clear, counts, np.maximum(means, 0))
    return found


@dataclass(frozen=True)
class NoisedCounts:
    """The opened tables so far: the last one with its noise, and the total of each word over all of them."""

    counts: Array  # topics x words
    variance: float  # of the noise in each of them
    words: Array  # the sum over topics and rounds
    words_variance: float
    rounds: float
    weight: float  # the number of rounds of which the table is a sum

    @classmethod
    def kept_in(cls, state: State) -> Self | None:
        """The tables in a model's state; None where no answer had noise."""
        if "noise" not in state:
            return None
        variance, words_variance, rounds, weight = (float(value) for value in state["noise"])
        return cls(state["noised"], variance, state["noised_words"], words_variance, rounds, weight)

    @classmethod
    def after(cls, state: State, counts: Array, deviation: float, kept: float = 0.0) -> Self | None:
        """The tables after one more answer, which is added to the share `kept` of the earlier ones."""
        before = cls.kept_in(state)
        if before is None:
            if deviation == 0:
                return None
            before = cls(np.zeros(counts.shape), 0.0, np.zeros(counts.shape[1]), 0.0, 0.0, 0.0)
        return cls(
            kept * before.counts + counts,
            kept**2 * before.variance + deviation**2,
            before.words + counts.sum(axis=0),
            before.words_variance + len(counts) * deviation**2,
            before.rounds + 1,
            kept * before.weight + 1,
        )

    def arrays(self) -> Mapping[str, Array]:
        """The arrays for a model's state."""
        noise = np.array([self.variance, self.words_variance, self.rounds, self.weight])
        return dict(zip(_NOISED, (self.counts, self.words, noise), strict=True))

    def word_totals(self) -> Array:
        """The likely total of each word in the table, from all rounds: above 0, even where there is nothing but noise."""
        share = self.weight / self.rounds
        return likely_counts(self.words * share, share * np.sqrt(self.words_variance))

    def likely(self) -> Array:
        """The likely counts without noise: positive, and each word's counts sum to its likely total.

        A topic's expectation is its share of each word's total. The variance of true counts around it is the table's variance
        less the noise's. Where that is not surely above 0, every topic has the word frequencies.
        """
        totals = self.word_totals()
        topics = likely_counts(self.counts.sum(axis=1), np.sqrt(self.variance * self.counts.shape[1]))
        expected = np.outer(topics / topics.sum(), totals)
        spread = self._spread(expected)
        if spread == 0:
            return expected
        believed = 1 / (1 + self.variance / (spread * expected**2))
        found = np.maximum(expected + believed * (self.counts - expected), _LEAST * expected)
        scaled: Array = found * (totals / found.sum(axis=0))
        return scaled

    def _spread(self, expected: Array) -> float:
        """The variance of true counts around their expectation, as a multiple of its square; 0 where noise explains it all."""
        apart = float(np.square(self.counts - expected).sum())
        by_noise = expected.size * self.variance
        if apart <= by_noise * (1 + _SURE * np.sqrt(2 / expected.size)):
            return 0.0
        return (apart - by_noise) / float(np.square(expected).sum())


def told_to_parties(state: State) -> State:
    """A state without the noised answers: parties get the counts that were made of them."""
    return {name: array for name, array in state.items() if name not in _NOISED}


def noised_fit(state: State, topics: int, words: int) -> bool:
    """Whether a state has all noised answers with the shapes that such a table gives, or none."""
    like = dict(zip(_NOISED, ((topics, words), (words,), (4,)), strict=True))
    found = {name: state[name].shape for name in _NOISED if name in state}
    return found in ({}, like) and all(state[name].dtype == np.float64 for name in found)


def likely_counts(found: Array, deviation: float) -> Array:
    """The posterior mean of each count behind noise of that deviation, with an exponential prior around the mean of all counts.

    Large counts hardly change. The larger the noise, the closer all counts are to the same number.
    """
    mean = max(float(found.mean()), 1e-3 * deviation, 1e-9)
    if deviation == 0:
        return np.maximum(found, 1e-9)
    return positive_means(found - deviation**2 / mean, np.full(found.shape, deviation))


def positive_means(centres: Array, deviations: Array) -> Array:
    """Means of normal variables given that they are above 0."""
    at = centres / deviations
    near = np.maximum(at, -_BEYOND)
    means = near + np.exp(-0.5 * near**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(near))
    far = -1.0 / np.minimum(at, -_BEYOND)
    found: Array = deviations * np.where(at < -_BEYOND, far - 2 * far**3 + 10 * far**5, means)
    return found
