"""Likely counts behind noise of a known size, what a model keeps of noised tables, and which cells stand above the noise.

Totals of words, and how topics share them, are posterior means whose priors are fitted to the noised numbers themselves
(empirical Bayes). The noise's standard deviation comes with the answer, from the mechanism that added it; maybe by word.
All is a function of opened answers and of what is public, so it costs no privacy. Every sum has a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Self

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Answer, Array, State, TopicModel
from securetm.data_classes import dataclass
from securetm.extras import later
from securetm.models.fixed_order import copy_row
from securetm.models.public_knowledge import PublicKnowledge
from securetm.models.quality import top_words

special = later("scipy.special")

# ---- what a few features explain of many normal vectors behind normal noise ----------------------------------------------
# Vector k has a prior of mean 0 and covariance D (F F' + w I) D, D being the diagonal matrix of its scales; noise is
# independent, with a variance of its own in each coordinate. By Woodbury's identity a vector costs its length times the square
# of the number of features, and no matrix of length x length exists.


def explained(found: Array, scale: Array, noise: Array, features: Array, own: float) -> tuple[Array, float]:
    """The posterior mean of what the features explain of each row of `found`; `noise` are the variances of its coordinates.

    Also the log density of all rows under prior and noise together, up to a constant.
    """
    found, scale, noise, features = (np.ascontiguousarray(one, dtype=np.float64) for one in (found, scale, noise, features))
    out = np.empty(found.shape)
    return out, float(_solve_all(found, scale, noise, features, own, out))


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_all(found: Array, scale: Array, noise: Array, features: Array, own: float, out: Array) -> float:
    total = 0.0
    for k in range(len(found)):
        total += _solve(found[k], scale[k], noise, features, own, out[k])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(found: Array, scale: Array, noise: Array, features: Array, own: float, out: Array) -> float:
    """Sets `out` to the posterior mean of one row's common part, D F times its coefficients. Returns the row's log evidence."""
    words, rank = features.shape
    inner, beside, back = np.zeros((rank, rank)), np.zeros(rank), np.empty(rank)
    for i in range(rank):
        inner[i, i] = 1.0
    squares, logs = 0.0, 0.0
    for v in range(words):
        alone = scale[v] * scale[v] * own + noise[v]
        each, heavy = scale[v] * found[v] / alone, scale[v] * scale[v] / alone
        squares += found[v] * found[v] / alone
        logs += math.log(alone)
        row = features[v]
        for i in range(rank):
            beside[i] += each * row[i]
            factor = heavy * row[i]
            for j in range(i + 1):
                inner[i, j] += factor * row[j]
    logs += _factorise(inner)
    copy_row(beside, back)
    _solve_triangles(inner, back)
    for v in range(words):
        row, common = features[v], 0.0
        for i in range(rank):
            common += row[i] * back[i]
        out[v] = scale[v] * common
    for i in range(rank):
        squares -= beside[i] * back[i]
    return -0.5 * (squares + logs)


@njit(cache=True, nogil=True, error_model="numpy")
def _factorise(matrix: Array) -> float:
    """Replaces the lower triangle by its Cholesky factor. Returns the logarithm of the determinant."""
    logs = 0.0
    for i in range(len(matrix)):
        for j in range(i + 1):
            left = matrix[i, j]
            for n in range(j):
                left -= matrix[i, n] * matrix[j, n]
            matrix[i, j] = math.sqrt(left) if i == j else left / matrix[j, j]
        logs += 2.0 * math.log(matrix[i, i])
    return logs


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_triangles(factor: Array, right: Array) -> None:
    """Replaces the right side by the solution, given the Cholesky factor."""
    rank = len(right)
    for i in range(rank):
        for n in range(i):
            right[i] -= factor[i, n] * right[n]
        right[i] /= factor[i, i]
    for i in range(rank - 1, -1, -1):
        for n in range(i + 1, rank):
            right[i] -= factor[n, i] * right[n]
        right[i] /= factor[i, i]


# ---- positive sizes behind normal noise ------------------------------------------------------------------------------------
# The prior is a mixture of narrow normal variables around a grid of sizes, and its weights make the noised numbers most
# probable (Kiefer and Wolfowitz 1956). Each is as wide as the grid's steps, so that sizes come out as found where noise is
# small.

_SIZES, _SIZE_PASSES = 80, 100
_CLEAR = 3.0  # deviations above which a number is surely no noise alone
_SMALL = 0.02  # of the typical deviation: a smaller size cannot be told from it
_RANGE = 1e6  # of the largest size to the smallest one, at most


def sizes_behind(found: Array, deviations: Array) -> tuple[Array, float]:
    """The posterior mean of each size, and the log density of all numbers. The larger the noise, the closer are the sizes."""
    found, deviations = np.ascontiguousarray(found), np.ascontiguousarray(deviations)
    clear = found > _CLEAR * deviations
    most = 1.05 * max(float(found[clear].max(initial=0.0)), _CLEAR * float(deviations.min()))
    least = max(min(_SMALL * float(np.median(deviations)), 1e-3 * most), most / _RANGE)
    grid = np.exp(np.linspace(math.log(least), math.log(most), _SIZES))
    out = np.empty(len(found))
    evidence = _means_of_sizes(found, deviations**2, grid, ((grid[1] / grid[0] - 1.0) * grid) ** 2, _SIZE_PASSES, out)
    return out, float(evidence)


@njit(cache=True, nogil=True, error_model="numpy")
def _means_of_sizes(found: Array, noise: Array, middles: Array, widths: Array, passes: int, out: Array) -> float:
    """Sets `out` to the posterior means under the fitted mixture. Returns the log density of all numbers."""
    chances, most, weights = _fitted(found, np.ones(len(found)), noise, middles, widths, passes)
    evidence = 0.0
    for v in range(len(found)):
        total, mean = 0.0, 0.0
        for g in range(len(middles)):
            chance = chances[v, g] * weights[g]
            total += chance
            mean += chance * (found[v] * widths[g] + middles[g] * noise[v]) / (widths[g] + noise[v])
        out[v] = mean / total
        evidence += most[v] + math.log(total)
    return evidence


# ---- mixtures of normal variables whose weights make noised numbers most probable -----------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def _chances_of(found: float, scale: float, noise: float, middles: Array, widths: Array, out: Array) -> float:
    """The density under each part of the mixture, the largest 1. Returns the logarithm of that one."""
    most = -math.inf
    for g in range(len(out)):
        variance = scale * widths[g] + noise
        out[g] = -0.5 * ((found - middles[g]) ** 2 / variance + math.log(variance))
        most = max(most, out[g])
    for g in range(len(out)):
        out[g] = math.exp(out[g] - most)
    return most


@njit(cache=True, nogil=True, error_model="numpy")
def _fitted(
    found: Array, scales: Array, noise: Array, middles: Array, widths: Array, passes: int
) -> tuple[Array, Array, Array]:
    """Each number's density under each part and the logarithm of its divisor; the weights after so many steps."""
    chances, most = np.empty((len(found), len(middles))), np.empty(len(found))
    weights = np.full(len(middles), 1.0 / len(middles))
    for n in range(len(found)):
        most[n] = _chances_of(found[n], scales[n], noise[n], middles, widths, chances[n])
    for _ in range(passes):
        weigh(chances, weights)
    return chances, most, weights


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(chances: Array, weights: Array) -> None:
    """One step of expectation maximisation: a part weighs as much as the numbers that are likely its own."""
    fresh = np.zeros(len(weights))
    for v in range(len(chances)):
        total = 0.0
        for g in range(len(weights)):
            total += chances[v, g] * weights[g]
        for g in range(len(weights)):
            fresh[g] += chances[v, g] / total
    for g in range(len(weights)):
        weights[g] *= fresh[g] / len(chances)


# ---- numbers around known centres behind normal noise, some near their centre and some far from it -----------------------
# The prior of each number is a mixture of normal variables around its centre, from narrow to wide in units of its own scale.
# The mixture's weights make the noised numbers most probable (Stephens 2017).

_SPREADS = np.exp(np.linspace(math.log(1e-3), math.log(30.0), 14))  # variances, as multiples of the scale's square
_SPREAD_PASSES = 60
_FITTED = 20_000  # the weights are fitted to so many numbers


def means_around(found: Array, centres: Array, scale: Array, noise: Array) -> Array:
    """The posterior mean of each number; `noise` are variances, and all have the shape of `found`."""
    squares = np.square(scale).ravel()
    apart, variances = (found - centres).ravel(), np.ascontiguousarray(noise).ravel()
    some = slice(None, None, -(-len(apart) // _FITTED))
    out = np.empty(len(apart))
    fitted_to = (apart[some].copy(), squares[some].copy(), variances[some].copy())
    _, _, weights = _fitted(*fitted_to, np.zeros(len(_SPREADS)), _SPREADS, _SPREAD_PASSES)
    _set_means(apart, squares, variances, _SPREADS, weights, out)
    return centres + out.reshape(found.shape)


@njit(cache=True, nogil=True, error_model="numpy")
def _set_means(apart: Array, squares: Array, noise: Array, spreads: Array, weights: Array, out: Array) -> None:
    chances, middles = np.empty(len(spreads)), np.zeros(len(spreads))
    for n in range(len(apart)):
        _chances_of(apart[n], squares[n], noise[n], middles, spreads, chances)
        total, kept = 0.0, 0.0
        for g in range(len(spreads)):
            chance, variance = chances[g] * weights[g], squares[n] * spreads[g]
            total += chance
            kept += chance * variance / (variance + noise[n])
        out[n] = apart[n] * kept / total


_LEAST = 1e-3  # of a count's expectation: no word is impossible in a topic
_LEAST_CENTRE = 0.02  # of a count's expectation, around which it may lie
_SMALLEST = 1e-9
_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of public frequencies, around which totals may lie
_TRIED_WORDS, _TRIED_TOPICS = 500, 10  # weights are chosen on so many
_WEIGHTS = (0.1, 0.1, 0.3)  # where the search begins: of what all words of a topic share, of similar words, of each word alone
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-6, 1e3
_STEPS = (4.0, 2.0, 2.0**0.5)  # by which a weight is multiplied or divided, coarse to fine
_MOST_MOVES = 12  # of the search, with each step
_SURE = 4.5  # of log evidence, as much as three deviations: with less, no difference from the expectation is believed


def likely_totals(found: Array, deviation: Array | float, public: Array | None = None) -> Array:
    """The likely total of each word behind noise of that deviation, which may differ by word. All are above 0.

    Totals have a prior of any form, fitted to all words together (Kiefer and Wolfowitz 1956; Jiang and Zhang 2009): in common,
    or around a power of their public frequencies, whichever makes the noised totals most probable. Without noise totals are as
    found; where there is nothing but noise, all words are alike.
    """
    deviations = np.broadcast_to(np.asarray(deviation, dtype=np.float64), found.shape)
    if not deviations.any():
        return np.maximum(found, _SMALLEST)
    deviations = np.maximum(deviations, _SMALLEST)
    sure = 1.0 / np.square(deviations)
    mean = max(float((found * sure).sum() / sure.sum()), _LEAST * float(deviations.min()))
    best, alike = np.full(found.shape, mean), -0.5 * np.square((found - mean) / deviations) - np.log(deviations)
    most = float(alike.sum())
    for power in (0.0,) if public is None else _POWERS:
        base = np.ones(len(found)) if public is None else np.maximum(public / public.mean(), _SMALLEST) ** power
        sizes, evidence = sizes_behind(found / base, deviations / base)
        evidence -= float(np.log(base).sum()) + (2 * _SURE if power else _SURE)
        if evidence > most:
            best, most = base * sizes, evidence
    result: Array = np.maximum(best, _SMALLEST)
    return result


def likely_counts(found: Array, deviation: Array | float, asked: Array, totals: Array, vectors: Array | None = None) -> Array:
    """The likely counts, topics x words, behind noise of that deviation, which may differ by word.

    A count's expectation is the share of its word that the topic had when the question was asked, times the word's likely
    total, moved by what all words of the topic have in common and by what similar words have (by `vectors`). How much it is
    moved, and how far true counts lie around it, is what makes the noised counts most probable. So without noise the counts
    come out; where noise explains all differences, the expectation does. No count is negative, and each word's counts sum to
    its likely total.
    """
    deviations = np.broadcast_to(np.asarray(deviation, dtype=np.float64), found.shape[1:])
    if not deviations.any():
        return np.maximum(found, 0.0)
    expected = shares_of_words(asked) * totals
    scale = np.sqrt(expected * (totals / len(found)))
    apart, noise = found - expected, np.square(np.maximum(deviations, _SMALLEST))
    features = np.ones((len(totals), 1))  # one number that is the same for all words, and the words' vectors
    features = features if vectors is None else np.concatenate([features, vectors.astype(np.float64)], axis=1)
    weights = _weights(apart, scale, noise, features)
    if not any(weights):
        return expected
    common, _ = explained(apart, scale, noise, features * np.sqrt(_by_feature(weights, features)), weights[2])
    centres = np.maximum(expected + common, _LEAST_CENTRE * expected)
    spread = np.sqrt(centres * (totals / len(found)))
    counts = means_around(found, centres, spread, np.broadcast_to(noise, found.shape))
    counts = np.maximum(counts, _LEAST * expected)
    result: Array = counts * (totals / counts.sum(axis=0))
    return result


def shares_of_words(counts: Array) -> Array:
    """The share of each topic in each word's counts; equal shares of a word without any."""
    known = np.maximum(counts, 0.0) + _SMALLEST
    found: Array = known / known.sum(axis=0)
    return found


def _by_feature(weights: tuple[float, float, float], features: Array) -> Array:
    return np.array([weights[0]] + [weights[1]] * (features.shape[1] - 1))


def _weights(apart: Array, scale: Array, noise: Array, features: Array) -> tuple[float, float, float]:
    """The weights that make the table most probable: a search by coordinates, on some words and topics where there are many.

    They are powers of one number, so that a last bit that differs elsewhere chooses no other weights.
    """
    topics, words = slice(None, None, -(-len(apart) // _TRIED_TOPICS)), slice(None, None, -(-len(noise) // _TRIED_WORDS))
    facts = apart[topics, words], scale[topics, words], noise[words]

    def evidence(weights: tuple[float, float, float]) -> float:
        return explained(*facts, features[words] * np.sqrt(_by_feature(weights, features)), weights[2])[1]

    none = evidence((0.0, 0.0, 0.0))
    best, known = _WEIGHTS, evidence(_WEIGHTS)
    for step in _STEPS:
        for _ in range(_MOST_MOVES):
            moves = [_moved(best, n, by) for n in range(3) if n != 1 or features.shape[1] > 1 for by in (step, 1.0 / step)]
            tried = [(evidence(move), move) for move in moves]
            found, move = max(tried)
            if found <= known:
                break
            best, known = move, found
    return best if known > none + _SURE else (0.0, 0.0, 0.0)


def _moved(weights: tuple[float, float, float], which: int, factor: float) -> tuple[float, float, float]:
    moved = [min(max(w * factor if n == which else w, _LEAST_WEIGHT), _MOST_WEIGHT) for n, w in enumerate(weights)]
    return moved[0], moved[1], moved[2]


# ---- what stands above the noise, and what a state keeps of noised tables ---------------------------------------------


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
    chances = special.log_ndtr(-deviations_above(counts, deviation)).ravel()
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
