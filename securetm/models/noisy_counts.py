"""What a model keeps of noised tables of counts, the likely counts behind them, and which cells stand above the noise.

The noise's standard deviation comes with the answer, from the mechanism that added it; it may differ by word. All here is a
function of opened answers, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import log_ndtr

from securetm.contracts import Answer, Array, State, TopicModel
from securetm.models.likely_counts import likely_counts, likely_totals
from securetm.models.public_knowledge import PublicKnowledge
from securetm.models.quality import top_words

RATE = 0.05  # the expected share of false ones among all cells that are said to stand above the noise
_KNOWN = 5.0  # deviations by which the table's total must stand above its own noise: below, no expectation is known


def top_words_above_noise(model: TopicModel, state: State, n: int = 10) -> list[list[bool]] | None:
    """Whether each of a topic's heaviest words stands above the noise, heaviest first; None where that is not tested."""
    above = model.above_noise(state)
    if above is None:
        return None
    return [above[topic, words].tolist() for topic, words in enumerate(top_words(model.topics(state), n))]


def stand_above(counts: Array, deviation: Array | float, rate: float = RATE) -> Array:
    """Whether each count stands above the noise, of a known deviation that may differ by word, at a false-discovery rate.

    The claim of a cell: in the sum *without* noise, the word is more frequent in the topic than the word's total times the
    topic's share say. It is about this one sum. It does not say that the topic is a theme of the world, nor that another run,
    other documents or another start would find it: where documents are split by chance, or by a start that somebody chose, the
    parts differ in truth.

    It is the procedure of Benjamini and Hochberg (1995) over *all* cells: the heaviest words of a topic are chosen by the same
    noise, so a procedure over these alone would be wrong. Cells share their expectations' noise, so that they are weakly and
    negatively correlated (by about -1 over the number of topics or words).
    """
    chances = log_ndtr(-deviations_above(counts, deviation)).ravel()
    order = np.argsort(chances, kind="stable")
    limits = np.log(rate) + np.log(np.arange(1, len(order) + 1) / len(order))
    below = np.flatnonzero(chances[order] <= limits)
    found = np.zeros(len(order), dtype=bool)
    found[order[: below[-1] + 1 if len(below) else 0]] = True
    return found.reshape(counts.shape)


def deviations_above(counts: Array, deviation: Array | float) -> Array:
    """How many deviations each count is above its expectation: its word's total times its topic's share, in this table.

    The deviations are those of the count less its expectation, which has noise too: where noise e of deviation d_v is added to
    word v, p is the share of topic k and q that of word w, the difference moves by the sum over all j and v of
    e_jv ([j = k] - p) ([v = w] - q), and by a product of two sums of noise over the total. Without a total there is no
    expectation, and no count is above it.
    """
    counts = np.asarray(counts, dtype=np.float64)
    noise = np.broadcast_to(np.square(np.asarray(deviation, dtype=np.float64)), counts.shape[1:])  # of a word, in every topic
    topics, words, whole = counts.sum(axis=1), counts.sum(axis=0), float(counts.sum())
    of_all = len(counts) * float(noise.sum())
    if whole <= _KNOWN * np.sqrt(of_all) or of_all == 0:
        return np.full(counts.shape, -np.inf)
    p, q = np.clip(topics / whole, 0.0, 1.0), np.clip(words / whole, 0.0, 1.0)
    by_topic = np.square(1.0 - p) + (len(p) - 1) * np.square(p)
    by_word = noise * np.square(1.0 - q) + np.square(q) * (noise.sum() - noise)
    variance = np.outer(by_topic, by_word) + noise.sum() * len(p) * noise / whole**2
    found: Array = (counts - np.outer(topics / whole, words)) / np.sqrt(variance)
    return found


NOISED = ("noised", "noised_words", "noise")  # the arrays of a state that hold noised answers; parties do not get them
_MOST_APART = 4.0  # of totals of two rounds
BY_WORD = "noise_by_word"  # the noise of each word, as a multiple; only where it differs
AT_HOME = "words_noised"  # says that parties noised the words of their documents; only where they did


@dataclass(frozen=True)
class Totals:
    """How one answer tells the totals of words."""

    sure: float = 1.0  # over how sure a sum of its counts would be: one over the variance
    rescaled: bool = False  # whether earlier totals were told on another scale: a clipped row shrinks with what else is in it
    told: Array | None = None  # the totals where the answer tells them by themselves, and not as sums of counts
    deviation: float = 0.0  # of the noise in them

    def found(self, counts: Array, variance: Array | float) -> tuple[Array, Array | float]:
        """The totals in an answer with these counts, times how sure they are, and the variance of their noise."""
        told, noise = (counts.sum(axis=0), len(counts) * variance) if self.told is None else (self.told, self.deviation**2)
        return self.sure * told, self.sure * noise


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
        by_word = np.square(state[BY_WORD]) if BY_WORD in state else 1.0
        return cls(state["noised"], variance * by_word, state["noised_words"], words_variance * by_word, rounds, weight)

    @classmethod
    def after(
        cls, state: State, counts: Array, deviation: Array | float, kept: float = 0.0, totals: Totals | None = None
    ) -> Self | None:
        """The tables after one more answer, which is added to the share `kept` of the earlier ones."""
        before, variance, told = cls.kept_in(state), np.square(deviation), totals or Totals()
        if before is None:
            if not variance.any():
                return None
            before = cls(np.zeros(counts.shape), 0.0, np.zeros(counts.shape[1]), 0.0, 0.0, 0.0)
        alike = before.alike(counts) if told.rescaled else 1.0
        words, words_variance = told.found(counts, variance)
        return cls(
            kept * before.counts + counts,
            kept**2 * before.variance + variance,
            alike * before.words + words,
            alike**2 * before.words_variance + words_variance,
            before.rounds + told.sure,
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
        kept = dict(zip(NOISED, (self.counts, self.words, noise), strict=True))
        return kept if variance.min() == variance.max() else {**kept, BY_WORD: np.sqrt(variance / variance.max())}

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
    return {AT_HOME: np.ones(1)} if answer.words_noised else {}


def behind_noise(state: State) -> bool:
    """Whether noise was in the sums that a state is made of, or in the words that were counted."""
    return "noise" in state or AT_HOME in state
