"""Topics from one question: how often each two words stand in one document, and how many documents hold each word.

The answer does not depend on the model, so it is asked for once. All else is computed from that one sum (Arora et al. 2013;
Lee, Bindel and Mimno 2015 factorise such sums, without a bound on a document).

A document with n distinct words has the number `sqrt(2 (1 - s) / (n (n - 1)))` for each two of its words, and `sqrt(s / n)` for
each word, where s is the setting `alone`. With one word it has the number 1 for it. Its squared length is then

    n (n - 1) / 2 * 2 (1 - s) / (n (n - 1)) + n * s / n = (1 - s) + s = 1,

however long it is, and 0 where it has no word. It is the upper half of u u^T, where u is 1 / sqrt(n) for each of its words,
with numbers off the diagonal times sqrt(2); the diagonal would say nothing more than u, so it holds the words themselves.
Numbers are rounded down to a public grid of a power of two. So a row is no longer than 1, and sums of rows are exact in 64 bits
in any order: parties and one machine reach the same sum, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from securetm.compiled import njit
from securetm.contracts import MOST_TOPICS, Answer, Array, Block, ClippedSum, Memory, Public, State, Terms
from securetm.data_classes import dataclass, replace
from securetm.errors import BrokenPromise, Failed
from securetm.models.batches import grouped
from securetm.models.estimator import Count, Inside, Smoothing
from securetm.models.fixed_order import copy_row, overlaps, plus, product
from securetm.models.mixed_topics import BagDocuments, Bags, Completion, MixedTopics, kept_fit, without_kept
from securetm.models.noisy_counts import likely_totals
from securetm.models.public_knowledge import PublicKnowledge
from securetm.models.questions.words import MOST_PAIRED, total_of
from securetm.settings import within

# ---- rows of documents ---------------------------------------------------------------------------------------------------
# A row is the upper half of a symmetric matrix of words x words, row by row: the number of word w with itself is at
# `w * (2 V - w + 1) / 2`. No row is made; all sums run in a fixed order.


@njit(cache=True, nogil=True, inline="always")
def _add(out: Array, begin: int, end: int, words: Array, vocabulary: int, alone: float, pair: float) -> None:
    """Adds one document's row: `alone` for each of its words, `pair` for each two of them. Words are in order."""
    for i in range(begin, end):
        first = words[i]
        place = first * (2 * vocabulary - first + 1) // 2 - first
        out[place + first] += alone
        for j in range(i + 1, end):
            out[place + words[j]] += pair


@njit(cache=True, nogil=True)
def summed(bags: Bags, alone: Array, pairs: Array, weights: Array, vocabulary: int) -> Array:
    """The weighted sum of the documents' rows."""
    ends, words, _ = bags
    out = np.zeros(vocabulary * (vocabulary + 1) // 2)
    for d in range(len(weights)):
        if weights[d] != 0.0:
            _add(out, ends[d], ends[d + 1], words, vocabulary, weights[d] * alone[d], weights[d] * pairs[d])
    return out


@njit(cache=True, nogil=True)
def lengths_of(order: Array, groups: Array, bags: Bags, alone: Array, pairs: Array, vocabulary: int) -> Array:
    """The l2 norm of each group's summed rows; group g is documents `order[groups[g]:groups[g + 1]]`.

    One document's length follows from its number of words. Several documents fill one buffer, of which only the entries that
    they filled are cleared.
    """
    ends, words, _ = bags
    out = np.empty(len(groups) - 1)
    filled = np.zeros(1)
    for g in range(len(out)):
        first = order[groups[g]]
        if groups[g + 1] - groups[g] == 1:
            count = float(ends[first + 1] - ends[first])
            out[g] = math.sqrt(count * alone[first] ** 2 + 0.5 * count * (count - 1.0) * pairs[first] ** 2)
            continue
        if len(filled) == 1:
            filled = np.zeros(vocabulary * (vocabulary + 1) // 2)
        for d in order[groups[g] : groups[g + 1]]:
            _add(filled, ends[d], ends[d + 1], words, vocabulary, alone[d], pairs[d])
        out[g] = math.sqrt(_emptied(filled, order[groups[g] : groups[g + 1]], bags, vocabulary))
    return out


@njit(cache=True, nogil=True, inline="always")
def _emptied(filled: Array, documents: Array, bags: Bags, vocabulary: int) -> float:
    """The sum of squares of all entries that these documents filled. They are 0 afterwards, so that none counts twice."""
    ends, words, _ = bags
    squares, lost = 0.0, 0.0
    for d in documents:
        for i in range(ends[d], ends[d + 1]):
            first = words[i]
            place = first * (2 * vocabulary - first + 1) // 2 - first
            for j in range(i, ends[d + 1]):
                squares, lost = plus(squares, lost, filled[place + words[j]] ** 2)
                filled[place + words[j]] = 0.0
    return squares


@njit(cache=True, nogil=True)
def improve(
    topics: Array, gram: Array, words_of: Array, noise: Array, factors: Array, expected: Array, spread: Array, least: float
) -> None:
    """One step of block coordinate descent on each topic (topics x words), beside another factor that is fixed.

    `gram` are the products of that factor's topics, `words_of` its products with the pairs, `noise` each topic's variance of a
    word's product over the square of the factor. A topic is read as a posterior mean: its words are expected in the shares
    `expected`, and apart from these by `spread`, both times the topic's mass.
    """
    k, width = topics.shape
    slope = np.empty(width)
    for z in range(k):
        length = max(gram[z, z], 1e-9)
        copy_row(words_of[z], slope)
        for j in range(k):
            for v in range(width):
                slope[v] -= gram[z, j] * topics[j, v]
        mass = 0.0
        for v in range(width):
            mass += topics[z, v] / factors[v]
        for v in range(width):
            middle = mass * expected[z, v] * factors[v]
            apart = (mass * spread[z, v] * factors[v]) ** 2
            found = topics[z, v] + slope[v] / length - middle
            topics[z, v] = middle + max(found * apart / (apart + noise[z, v] / length + 1e-300), (least - 1.0) * middle)


LONGEST = 1.0  # of a row
_ROOM = 1.0 - 2.0**-30  # for the rounding of lengths, so that no row is clipped
_FINEST = 8  # steps of the grid in 1 / V: a party's own rounding to a grid for its secure sum stays below half a step


def size_of(words: int) -> int:
    """The numbers of a row over so many words."""
    return words * (words + 1) // 2


def grid_of(words: int) -> float:
    """The step of the grid of a row over so many words: a power of two, at most 1 / (8 V)."""
    return float(2.0 ** -np.ceil(np.log2(_FINEST * max(words, 2))))


def weights_of(counts: Array, alone: float, words: int) -> tuple[Array, Array]:
    """The number of each word, and of each two words, in documents with so many distinct words."""
    n, grid = counts.astype(np.float64), grid_of(words)
    single = np.where(n > 1, np.sqrt(alone / np.maximum(n, 1.0)), 1.0)
    pair = np.sqrt(2.0 * (1.0 - alone) / np.maximum(n * (n - 1.0), 1.0))
    return tuple(np.floor(_ROOM * each / grid) * grid for each in (single, pair))  # type: ignore[return-value]


@dataclass(frozen=True)
class DocumentPairs:
    """The rows of documents as gradients of losses (contracts.Losses): no row is materialised."""

    held: BagDocuments
    single: Array  # of each document, the number of each of its words
    pair: Array  # of each document, the number of each two of its words
    words: int  # in the vocabulary

    @classmethod
    def from_bags(cls, held: BagDocuments, alone: float, words: int) -> Self:
        return cls(held, *weights_of(np.diff(held.bags.ends), alone, words), words)

    @property
    def values(self) -> Array:
        return np.zeros(len(self.held))

    def norms(self, owners: Array) -> Array:
        return lengths_of(*grouped(owners), self.held.bags, self.single, self.pair, self.words)

    def gradient(self, weights: Array) -> Array:
        return summed(self.held.bags, self.single, self.pair, weights.astype(np.float64), self.words)


_LEAST_FREQUENCY = 0.02  # of a word's frequency, in shares of all words alike


# ---- the opened sum ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PairSums:
    """The sums over all documents: what is known of each two words, and how surely.

    Each number varies for two reasons: noise of a known deviation, and the chance by which documents hold two words. The
    variance of the second is near the mean of the sum times the number that one document adds. A factor for each word makes all
    numbers vary by 1 at most, so that least squares weigh them rightly, and eigenvalues beyond `2 sqrt(V)` are no chance.
    """

    pairs: Array  # words x words, symmetric, zeros on the diagonal
    alone: Array  # of each word
    deviation: float  # of the noise in each number
    share: float  # of a document's squared row for single words

    @classmethod
    def from_row(cls, row: Array, words: int, deviation: float, share: float) -> Self:
        """The sums in an opened row. Without noise they are whole steps of the grid, whatever rounding a secure sum added."""
        if deviation == 0:
            row = np.rint(row / grid_of(words)) * grid_of(words)
        half = np.zeros((words, words))
        half[np.triu_indices(words)] = row
        alone = half.diagonal().copy()
        np.fill_diagonal(half, 0.0)
        return cls(half + half.T, alone, deviation, share)

    @cached_property
    def frequencies(self) -> Array:
        """Each word's share of all words, above 0: from pairs and from single words, each as surely as it is known."""
        words, pairs = len(self.alone), self.pairs.sum(axis=1)
        whole, single = max(float(pairs.sum()), 1e-9), max(float(self.alone.sum()), 1e-9)
        if self.deviation == 0:
            found = pairs / whole if pairs.any() else self.alone / single
        else:
            surely = np.array([single**2, whole**2 / words]) / self.deviation**2  # the inverse variances of both estimates
            both = np.array([self.alone / single, pairs / whole])
            found = likely_totals(((surely / surely.sum())[:, None] * both).sum(axis=0), float(surely.sum() ** -0.5))
        kept = np.maximum(found, _LEAST_FREQUENCY / words)
        result: Array = kept / kept.sum()
        return result

    @cached_property
    def total(self) -> float:
        """The sum of all pairs, at least 0."""
        return max(float(self.pairs.sum()), 1e-9)

    @cached_property
    def length(self) -> float:
        """The mean number of distinct words in a document, at least 2: pairs grow by it, single words by its square root."""
        ratio = self.total / max(float(self.alone.sum()), 1e-9)
        return max(ratio**2 * self.share / (2.0 * (1.0 - self.share)), 2.0)

    @cached_property
    def _by_chance(self) -> Array:
        """q f of each word: pairs of words vary by chance with the product of theirs."""
        each = np.sqrt(2.0 * (1.0 - self.share)) / self.length  # what one document adds to a pair
        found: Array = np.sqrt(each * self.total) * self.frequencies
        return found

    @cached_property
    def factors(self) -> Array:
        """The factor of each word, by which both its row and its column are multiplied: then every number varies by 1 at most.

        With noise s and a variance q^2 f_i f_j of chance, (s^2 + q^2 f_i f_j) / ((s + q f_i) (s + q f_j)) is at most 1.
        """
        return 1.0 / np.sqrt(self.deviation + self._by_chance)

    def noise_beside(self, topics: Array) -> Array:
        """The variance of each word's product with topics (topics x words) over the even pairs, over the topic's square."""
        added = self.deviation / (self.deviation + self._by_chance)
        squares = np.square(topics)
        whole = np.maximum(squares.sum(axis=1), 1e-300)
        of_noise, of_chance = ((squares * part).sum(axis=1) / whole for part in (added, 1.0 - added))
        found: Array = of_noise[:, None] * added + of_chance[:, None] * (1.0 - added)
        return found

    @cached_property
    def even(self) -> Array:
        """The pairs times the factors of both words."""
        return self.pairs * self.factors * self.factors[:, None]

    @cached_property
    def spectrum(self) -> Array:
        """The eigenvalues of the even pairs over the edge of chance, largest first: beyond 1 they are no chance.

        They are rounded, so that the last bits of a library's solver decide nothing.
        """
        found: Array = np.round(np.linalg.eigvalsh(self.even)[::-1] / (2.0 * np.sqrt(len(self.alone))), 3)
        return found

    @property
    def beyond_chance(self) -> int:
        return int((self.spectrum > 1.0).sum())


_BACKGROUND, _UNSURE = 0.01, 0.5  # the share of the words' own frequencies in every topic: surely known, and pure noise
_FROM_PUBLIC, _FROM_FREQUENCIES = 5.0, 10.0  # how far a word's share of a topic may be from what is expected (squared)
_OF_PUBLIC = 0.6  # the share of public topics in what is expected; word frequencies are the rest
_LEAST_EXPECTED = 1e-3  # of what is expected of a word in a topic
_TINY = 1e-12


# ---- topics that explain it: a symmetric factorisation with nothing negative ---------------------------------------------


def factorised(sums: PairSums, start: Array, passes: int, public: Array | None = None) -> dict[str, Array]:
    """The topics that are nearest to the sums, from these shares of topics x words on: even pairs are T' T, in least squares.

    Also the prevalence of each topic, which sum to one, and how much more often than by chance two stand `together` in one
    document. No word was counted with itself, so these pairs are left out: the diagonal follows the topics.

    Each topic is expected to have the words of a public one, or the words' own frequencies, and may be so far from them that
    the noise decides how much of what is found is believed.
    """
    even, expected = sums.even.copy(), np.tile(sums.frequencies, (len(start), 1))
    if public is not None:
        expected = _OF_PUBLIC * public + (1.0 - _OF_PUBLIC) * expected
    spread = np.sqrt((_FROM_FREQUENCIES if public is None else _FROM_PUBLIC) * expected * sums.frequencies)
    known = sums.factors, np.ascontiguousarray(expected), spread, _LEAST_EXPECTED

    def improved(topics: Array, beside: Array) -> tuple[Array, Array]:
        """One factor after a step of block coordinate descent beside the other; then both are scaled to the same lengths."""
        np.fill_diagonal(even, (topics * beside).sum(axis=0))
        found = topics.copy()
        improve(found, overlaps(beside), product(beside, even), sums.noise_beside(beside), *known)
        mine, others = (np.sqrt(np.square(each).sum(axis=1, keepdims=True)) for each in (found, beside))
        scale = np.sqrt(np.maximum(others, _TINY) / np.maximum(mine, _TINY))
        return found * scale, beside / scale

    one = start * sums.frequencies * sums.factors
    mine = np.square(one.sum(axis=1)).sum()
    one = one * np.sqrt(max(float(even.sum()), _TINY) / max(float(mine), _TINY))  # its products have the pairs' sum
    other = one.copy()
    for _ in range(passes):
        one, other = improved(one, other)
        other, one = improved(other, one)
    found = (one + other) / sums.factors
    masses = np.maximum(found.sum(axis=1, keepdims=True), _TINY)
    # The fewer directions stand beyond noise, the more of the words' frequencies is in every topic.
    background = float(_BACKGROUND + _UNSURE / (1.0 + sums.beyond_chance) ** 1.5)
    topics = (1.0 - background) * found / masses + background * sums.frequencies
    topics /= topics.sum(axis=1, keepdims=True)
    prevalence = np.square(masses[:, 0]) / np.square(masses).sum()
    return {"topics": topics, "prevalence": prevalence, "together": _together(even, topics * sums.factors, prevalence)}


def _together(even: Array, topics: Array, prevalence: Array) -> Array:
    """Least squares of pairs of topics, over what is expected by chance. Rounded, as the last bits are those of a library."""
    inner = np.linalg.pinv(topics @ topics.T, hermitian=True)
    found = np.maximum(inner @ (topics @ even @ topics.T) @ inner, 0.0)
    found = (found + found.T) / max(float(found.sum()) * 2.0, _TINY)
    result: Array = np.round(found / np.maximum(np.outer(prevalence, prevalence), _TINY), 3)
    return result


Topics = Annotated[int, within(0, MOST_TOPICS)]
MOST_FOUND = 100  # topics, where their number follows from the noise
_SHOWN = 50  # eigenvalues that are kept
_FOLDING = 100  # passes over a document, where its shares do not settle earlier
_LEAST = 1e-12  # of a word in a topic


@dataclass(frozen=True)
class Moments(MixedTopics):
    """Topics that explain which words stand together in documents, learned in a single round.

    With `n_topics = 0` there are as many topics as the sum shows beyond noise and chance, at least 2.
    """

    n_topics: Topics = 50  # of the shared model; 0: as many as stand beyond the noise, up to 100
    alpha: Smoothing = 0.1  # of the symmetric Dirichlet prior of a document's topics
    alone: Inside = 0.2  # the share of a document's squared row that says which words it holds; the rest says which two
    passes: Count = 60  # over the topics
    name: ClassVar[str] = "moments"
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 1
    most_rounds: ClassVar[int] = 1  # the answer does not depend on the model: asked again, it is the same

    @property
    def most_shown_topics(self) -> int:
        return self.n_topics or MOST_FOUND

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Random topics, which the first sum replaces by those that it leads to from there."""
        words, topics = len(vocabulary), self.n_topics or 2
        check_pairs(words)
        found = rng.gamma(1.0, 1.0, (topics, words)) + _LEAST
        return {
            "topics": found / found.sum(axis=1, keepdims=True),
            "prevalence": np.full(topics, 1.0 / topics),
            "together": np.ones((topics, topics)),
            "spectrum": np.zeros(min(_SHOWN, words)),
            "beyond": np.zeros(1, dtype=np.int64),
            "step": np.zeros(1, dtype=np.int64),
        }

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """The public topics until the sum is there, which is read beside what is public of words."""
        begun = {"topics": public.topics} if self.n_topics else {}
        return {**self.start(vocabulary, rng), **begun, **public.arrays()}

    def query(self, state: State) -> PairsQuery:
        return PairsQuery(self, state["topics"].shape[1])

    def update(self, state: State, answer: Answer) -> State:
        """The state after the sum. A second sum replaces the first one."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        sums = PairSums.from_row(answer.total["pairs"], state["topics"].shape[1], answer.deviation, self.alone)
        return {**after, **self.learned_from(sums, state)}

    def learned_from(self, sums: PairSums, state: State) -> State:
        """What an opened sum says, from the topics of a state on."""
        begun, expected, beyond = state["topics"], None, sums.beyond_chance
        if not self.n_topics and state["step"][0] == 0:
            count = min(max(beyond, 2), MOST_FOUND)
            begun = np.random.default_rng([count, begun.shape[1]]).gamma(1.0, 1.0, (count, begun.shape[1]))
        elif self.n_topics and (public := PublicKnowledge.kept_in(state)):
            begun = public.topics / public.topics.sum(axis=0)
            expected = begun * sums.frequencies  # over words that are as frequent as these: each topic keeps its share of each
            expected = expected / expected.sum(axis=1, keepdims=True)
        found = factorised(sums, begun, self.passes, expected)
        return {**found, "spectrum": sums.spectrum[:_SHOWN], "beyond": np.full(1, beyond)}

    def fits(self, state: State, words: int) -> bool:
        """With `n_topics = 0`, also of a state with more than two topics."""
        if self.n_topics or "topics" not in state or not 2 <= len(state["topics"]) <= MOST_FOUND:
            return super().fits(state, words)
        with_so_many = replace(self, n_topics=len(state["topics"]))
        return kept_fit(state, self.most_shown_topics, words) and with_so_many.fits(without_kept(state), words)

    def topics(self, state: State) -> Array:
        if self.n_topics and len(state["topics"]) != self.n_topics:
            raise BrokenPromise("table of topics", len(state["topics"]), self.n_topics)
        found = np.clip(np.nan_to_num(state["topics"], nan=0.0), 0.0, 1.0) + _LEAST
        result: Array = found / found.sum(axis=1, keepdims=True)
        return result

    def folding(self, state: State) -> tuple[Array, int]:
        return np.full(len(state["topics"]), self.alpha), _FOLDING

    def completing(self, state: State) -> tuple[Array, Completion]:
        """Around the prevalence that the sum shows."""
        by_word = self.by_word(state)
        return by_word, Completion.around(by_word, state["prevalence"], len(state["prevalence"]) * self.alpha)

    def findings(self, state: State) -> Mapping[str, Any]:
        return {
            "topic_prevalence": np.round(state["prevalence"], 4).tolist(),
            "topics_together": np.round(state["together"], 2).tolist(),
            "topics_beyond_noise": int(state["beyond"][0]),
            "spectrum": state["spectrum"].tolist(),
        }


def check_pairs(words: int) -> None:
    if words > MOST_PAIRED:
        raise Failed(
            "the model moments counts every pair of words, and {words:,} words are more than the {most:,} that it takes",
            hint="keep fewer words (vocabulary.max_words), or take lda-vi, which counts words in topics",
            words=words,
            most=MOST_PAIRED,
        )


@dataclass(frozen=True)
class PairsQuery:
    """Asks how often each two words stand in one document, and how many documents hold each word, each document bounded."""

    model: Moments
    words: int
    multiplier: float = 0.0  # of its noise, where that is another than that of the training; 0: of the mechanism that adds it

    @property
    def terms(self) -> Terms:
        """One row per document, of length 1 at most."""
        return Terms((Block("pairs", (size_of(self.words),)),), multiplier=self.multiplier, bits=64, l2=LONGEST)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        rows = DocumentPairs.from_bags(BagDocuments.from_counts(documents.counts, self.words), self.model.alone, self.words)
        clipped_sum.add_losses(rows, np.arange(len(documents)), np.zeros((len(documents), 0)))


# ---- as the first question of another training ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicsBefore:
    """The first question of a training that begins at topics of `moments`, and what its answer says."""

    topics: int

    def question(self, words: int, multiplier: float) -> PairsQuery:
        """How often each two of so many words stand in one document."""
        check_pairs(words)
        return PairsQuery(Moments(n_topics=self.topics), words, multiplier)

    def found(self, vocabulary: Sequence[str], answer: Answer, public: Public | None) -> PublicKnowledge:
        """The topics in an opened sum, and the words' frequencies; beside what is public of words, where anything is.

        All follows from the sum and from public numbers. The same sum gives the same topics.
        """
        model, rng = Moments(n_topics=self.topics), np.random.default_rng(0)
        begun = model.start(vocabulary, rng) if public is None else model.started(vocabulary, public, rng)
        sums = PairSums.from_row(total_of(answer)["pairs"], len(vocabulary), answer.deviation, model.alone)
        vectors = np.zeros((len(vocabulary), 1), np.float32) if public is None else public.vectors
        return PublicKnowledge(model.topics(model.learned_from(sums, begun)), vectors, sums.frequencies)
