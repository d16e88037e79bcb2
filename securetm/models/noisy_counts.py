"""What a model keeps of noised tables of counts, and the likely counts behind them. It adds no noise.

The noise's standard deviation comes with the answer, from the mechanism that added it; it may differ by word. All here is a
function of opened answers, so it costs no privacy. How likely counts are found is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from securetm.contracts import Answer, Array, State
from securetm.models.likely_counts import likely_counts, likely_totals
from securetm.models.public_knowledge import PublicKnowledge

_NOISED = ("noised", "noised_words", "noise")  # the arrays of a state that hold noised answers; parties do not get them
_MOST_APART = 4.0  # of totals of two rounds
_BY_WORD = "noise_by_word"  # the noise of each word, as a multiple; only where it differs
_AT_HOME = "words_noised"  # says that parties noised the words of their documents; only where they did


@dataclass(frozen=True)
class Totals:
    """How one answer tells the totals of words."""

    sure: float = 1.0  # over how sure a sum of its counts would be: one over the variance
    rescaled: bool = False  # whether earlier totals were told on another scale: a clipped row shrinks with what else is in it
    told: Array | None = None  # the totals where the answer tells them by themselves, and not as sums of counts
    deviation: float = 0.0  # of the noise in them

    def found(self, counts: Array, variance: Array | float) -> tuple[Array, Array | float]:
        """The totals in an answer with these counts, times how sure they are, and the variance of their noise."""
        told, of = (counts.sum(axis=0), len(counts) * variance) if self.told is None else (self.told, self.deviation**2)
        return self.sure * told, self.sure * of


@dataclass(frozen=True)
class NoisedCounts:
    """The opened tables so far: the last one with its noise, and the total of each word over all of them."""

    counts: Array  # topics x words
    variance: Array | float  # of the noise in each of them; one number, or one for each word
    words: Array  # the sum over topics, and over rounds by how sure each is, as large as those of the last round
    words_variance: Array | float
    rounds: float  # how sure they are together; a round whose totals are a sum of counts alone has 1
    weight: float  # the number of rounds of which the table is a sum

    @classmethod
    def kept_in(cls, state: State) -> Self | None:
        """The tables in a model's state; None where no answer had noise."""
        if "noise" not in state:
            return None
        variance, words_variance, rounds, weight = (float(value) for value in state["noise"])
        by_word = np.square(state[_BY_WORD]) if _BY_WORD in state else 1.0
        return cls(state["noised"], variance * by_word, state["noised_words"], words_variance * by_word, rounds, weight)

    @classmethod
    def after(
        cls, state: State, counts: Array, deviation: Array | float, kept: float = 0.0, totals: Totals | None = None
    ) -> Self | None:
        """The tables after one more answer, which is added to the share `kept` of the earlier ones."""
        before, variance, of = cls.kept_in(state), np.square(deviation), totals or Totals()
        if before is None:
            if not variance.any():
                return None
            before = cls(np.zeros(counts.shape), 0.0, np.zeros(counts.shape[1]), 0.0, 0.0, 0.0)
        alike = before.alike(counts) if of.rescaled else 1.0
        words, words_variance = of.found(counts, variance)
        return cls(
            kept * before.counts + counts,
            kept**2 * before.variance + variance,
            alike * before.words + words,
            alike**2 * before.words_variance + words_variance,
            before.rounds + of.sure,
            kept * before.weight + 1,
        )

    def alike(self, counts: Array) -> float:
        """By what earlier totals are multiplied to add up as these counts do."""
        known, found = float(self.words.sum()), self.rounds * float(counts.sum())
        return min(max(found / known, 1.0 / _MOST_APART), _MOST_APART) if known > 0 else 1.0

    def arrays(self) -> Mapping[str, Array]:
        """The arrays for a model's state."""
        variance, of_words = np.asarray(self.variance), np.asarray(self.words_variance)
        noise = np.array([variance.max(), of_words.max(), self.rounds, self.weight])
        kept = dict(zip(_NOISED, (self.counts, self.words, noise), strict=True))
        return kept if variance.min() == variance.max() else {**kept, _BY_WORD: np.sqrt(variance / variance.max())}

    def word_totals(self, public: Array | None = None) -> Array:
        """The likely total of each word in one round's table, from all rounds: above 0, even where there is only noise."""
        return likely_totals(self.words / self.rounds, np.sqrt(self.words_variance) / self.rounds, public)


def likely_after(
    state: State, counts: Array, deviation: Array | float, asked: Array, kept: float = 0.0, totals: Totals | None = None
) -> State:
    """The arrays of a state after one more answer: the likely counts behind its noise, and the noised answers so far.

    `asked` is the table of counts that the question was asked with. So an answer is read beside all answers before it: theirs
    made that table. Without noise counts are as they came, but never negative.
    """
    noised = NoisedCounts.after(state, counts, deviation, kept, totals)
    if noised is None:
        return {"counts": np.maximum(counts, 0.0)}
    frequencies, vectors = public_words(state)
    likely = likely_counts(counts, deviation, asked, noised.word_totals(frequencies), vectors)
    return {**noised.arrays(), "counts": likely}


def public_words(state: State) -> tuple[Array | None, Array | None]:
    """What a state knows of words in public: their frequencies, and their vectors."""
    public = PublicKnowledge.kept_in(state)
    return (None, None) if public is None else (public.frequencies, public.vectors)


def noised_at_home(answer: Answer) -> State:
    """What a state keeps of an answer about documents whose words were noised at home: that they were."""
    return {_AT_HOME: np.ones(1)} if answer.words_noised else {}


def behind_noise(state: State) -> bool:
    """Whether noise was in the sums that a state is made of, or in the words that were counted."""
    return "noise" in state or _AT_HOME in state


def told_to_parties(state: State) -> State:
    """A state without the noised answers: parties get the counts that were made of them."""
    return {name: array for name, array in state.items() if name not in (*_NOISED, _BY_WORD, _AT_HOME)}


def noised_fit(state: State, topics: int, words: int) -> bool:
    """Whether a state has all noised answers with the shapes that such a table gives, or none."""
    like = dict(zip(_NOISED, ((topics, words), (words,), (4,)), strict=True))
    found = {name: state[name].shape for name in _NOISED if name in state}
    known = _BY_WORD not in state or (bool(found) and state[_BY_WORD].shape == (words,))
    known = known and (_AT_HOME not in state or state[_AT_HOME].shape == (1,))
    beside = [name for name in (_BY_WORD, _AT_HOME) if name in state]
    return known and found in ({}, like) and all(state[name].dtype == np.float64 for name in (*found, *beside))
