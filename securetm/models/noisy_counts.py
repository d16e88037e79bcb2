"""What a table of counts says where noise of a known size was added to it. It adds none.

The noise's standard deviation comes with the answer, from whatever added it. All here is a function of what was opened, so it
costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import log_ndtr

from securetm.contracts import Array, State

_BEYOND = 20.0  # deviations below 0, from where on a series is more exact than the quotient
_LEAST = 0.01  # of what is expected of a count: no word is impossible
_SURE = 3.0  # deviations by which a table must differ from word frequencies before any of it is believed
_NOISED = ("noised", "noised_words", "noise")  # what a state keeps of noised answers, beside what it shows to parties


def above_noise(counts: Array, deviations: float, deviation: float) -> Array:
    """Counts of topics x words for the next round; those below so many deviations of the noise say no more than that word's
    mean over all such topics, in which most of the noise is gone.

    Topics that noise set apart stay apart here: documents gather around them, and what gathers is no noise any more.
    """
    if deviation == 0:
        return np.maximum(counts, 0)
    clear = counts > deviations * deviation
    means = np.where(clear, 0, counts).sum(axis=0) / np.maximum((~clear).sum(axis=0), 1)
    found: Array = np.where(clear, counts, np.maximum(means, 0))
    return found


@dataclass(frozen=True)
class NoisedCounts:
    """What rounds have opened so far: the last table with its noise, and the total of each word over all of them."""

    counts: Array  # topics x words
    variance: float  # of the noise in each of them
    words: Array  # the sum over topics and rounds
    words_variance: float
    rounds: float
    weight: float  # of how many rounds the table is a sum

    @classmethod
    def kept_in(cls, state: State) -> Self | None:
        """Out of a model's state; None where no noise was ever in an answer."""
        if "noise" not in state:
            return None
        variance, words_variance, rounds, weight = (float(value) for value in state["noise"])
        return cls(state["noised"], variance, state["noised_words"], words_variance, rounds, weight)

    @classmethod
    def after(cls, state: State, counts: Array, deviation: float, kept: float = 0.0) -> Self | None:
        """With one more answer; `kept` is the share of the earlier tables that this one is added to."""
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
        """As a model's state keeps it."""
        noise = np.array([self.variance, self.words_variance, self.rounds, self.weight])
        return dict(zip(_NOISED, (self.counts, self.words, noise), strict=True))

    def word_totals(self) -> Array:
        """How often each word occurs in what the table counts, all rounds taken together: never 0, even where noise is all."""
        share = self.weight / self.rounds
        return likely_counts(self.words * share, share * np.sqrt(self.words_variance))

    def likely(self) -> Array:
        """The counts that are likely behind the noise: positive, and each word's add up to its likely total.

        Before a topic says anything, it says what all words say: its own share of each. How far topics really differ from that
        is what the table varies more than its noise does; where that is not surely anything, every topic is the word
        frequencies, and the model predicts as these do.
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
        """The variance of true counts around what is expected, as a multiple of its square; 0 where noise explains it all."""
        apart = float(np.square(self.counts - expected).sum())
        by_noise = expected.size * self.variance
        if apart <= by_noise * (1 + _SURE * np.sqrt(2 / expected.size)):
            return 0.0
        return (apart - by_noise) / float(np.square(expected).sum())


def told_to_parties(state: State) -> State:
    """A state without what was kept of noised answers: parties are shown the counts made of it."""
    return {name: array for name, array in state.items() if name not in _NOISED}


def likely_counts(found: Array, deviation: float) -> Array:
    """The mean of each count given what was found with that noise, where counts are spread exponentially around their mean.

    Large counts stay what they are. The larger the noise, the nearer all come to one and the same number.
    """
    mean = max(float(found.mean()), 1e-3 * deviation, 1e-9)
    if deviation == 0:
        return np.maximum(found, 1e-9)
    return positive_means(found - deviation**2 / mean, np.full(found.shape, deviation))


def positive_means(centres: Array, deviations: Array) -> Array:
    """Means of normal variables of which it is known that they are above 0."""
    at = centres / deviations
    near = np.maximum(at, -_BEYOND)
    means = near + np.exp(-0.5 * near**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(near))
    far = -1.0 / np.minimum(at, -_BEYOND)
    found: Array = deviations * np.where(at < -_BEYOND, far - 2 * far**3 + 10 * far**5, means)
    return found
