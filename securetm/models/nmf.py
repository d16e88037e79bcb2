"""Non-negative matrix factorisation whose answer is a sum over documents: what a federation learns, one machine would.

It is Lee and Seung's (1999), with the steps of Kim, He and Park (2014). All sums run in a fixed order: a document's numbers are
a function of the document and of the shared topics alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from securetm.compiled import njit
from securetm.contracts import MOST_TOPICS, Answer, Array, Block, Public, State, Terms
from securetm.data_classes import dataclass
from securetm.errors import BrokenPromise
from securetm.models.batches import grouped, on_ranges
from securetm.models.estimator import Count, Inside
from securetm.models.fixed_order import copy_row, overlaps, plus
from securetm.models.mixed_topics import BagDocuments, Bags, Completion, MixedTopics
from securetm.models.noisy_counts import NoisedCounts, Totals, likely_counts, public_words
from securetm.models.public_knowledge import PublicKnowledge
from securetm.settings import one_of, within

COUNTS, LOG, L2 = 0, 1, 2  # what a word of a document weighs
_SETTLED = 1e-7  # of the largest topic weight: the solve ends where no weight moves further
_LEAST_LENGTH = 1e-12  # of a topic's squared length


@njit(cache=True, nogil=True)
def weighed(bags: Bags, kind: int) -> Array:
    """What each word of each document weighs: its count, log(1 + count), or its count over the length of the document's row."""
    ends, _, counts = bags
    out = np.empty(len(counts))
    for d in range(len(ends) - 1):
        squares = 0.0
        for i in range(ends[d], ends[d + 1]):
            squares += float(counts[i]) * counts[i]
        for i in range(ends[d], ends[d + 1]):
            if kind == LOG:
                out[i] = math.log1p(counts[i])
            else:
                out[i] = counts[i] / math.sqrt(squares) if kind == L2 else counts[i]
    return out


@njit(cache=True, nogil=True)
def solve(
    first: int, last: int, bags: Bags, weights: Array, by_word: Array, gram: Array, passes: int, out: Array, losses: Array
) -> None:
    """The non-negative topic weights that are nearest to each document, from zero, and half the squared distance that is left.

    Coordinate descent over the topics in their order. Topics have length 1 or 0, so the weights are no longer than the
    document; where few passes leave more, they are scaled to it.
    """
    ends, words, _ = bags
    k = by_word.shape[1]
    slopes = np.empty(k)
    for d in range(first, last):
        slopes[:] = 0.0
        squares = 0.0
        for i in range(ends[d], ends[d + 1]):
            squares += weights[i] * weights[i]
            for z in range(k):
                slopes[z] -= weights[i] * by_word[words[i], z]
        losses[d] = 0.5 * squares + _descend(out[d], slopes, gram, passes)
        _bound(out[d], math.sqrt(squares))


@njit(cache=True, nogil=True, inline="always")
def _descend(found: Array, slopes: Array, gram: Array, passes: int) -> float:
    """Sets `found` to the least of a quadratic whose slopes at zero are given. Returns its value there."""
    k, value = len(found), 0.0
    found[:] = 0.0
    for _ in range(passes):
        moved, largest = 0.0, 0.0
        for z in range(k):
            if gram[z, z] <= _LEAST_LENGTH:
                continue
            now = max(found[z] - slopes[z] / gram[z, z], 0.0)
            step = now - found[z]
            if step != 0.0:
                value += step * (slopes[z] + 0.5 * step * gram[z, z])
                for j in range(k):
                    slopes[j] += step * gram[z, j]
                found[z] = now
            moved, largest = max(moved, abs(step)), max(largest, now)
        if moved <= _SETTLED * largest:
            break
    return value


@njit(cache=True, nogil=True, inline="always")
def _bound(found: Array, most: float) -> None:
    squares = 0.0
    for z in range(len(found)):
        squares += found[z] * found[z]
    length = math.sqrt(squares)
    if length > most:
        for z in range(len(found)):
            found[z] *= most / length


@njit(cache=True, nogil=True, inline="always")
def _add(d: int, bags: Bags, weights: Array, topics: Array, scale: float, together: Array, words_of: Array) -> None:
    """Adds one document's row: the products of its topic weights, and of its words with them (words x topics).

    A column of `topics` beyond those of `together` is the weight of its words by themselves.
    """
    ends, words, _ = bags
    k, wide = len(together), topics.shape[1]
    for z in range(k):
        if topics[d, z] != 0.0:
            for j in range(k):
                together[z, j] += scale * topics[d, z] * topics[d, j]
    for i in range(ends[d], ends[d + 1]):
        for z in range(wide):
            words_of[words[i], z] += scale * weights[i] * topics[d, z]


@njit(cache=True, nogil=True)
def summed(bags: Bags, weights: Array, topics: Array, scales: Array, k: int, vocabulary: int) -> tuple[Array, Array]:
    """The scaled sum of the documents' rows, of `k` topics."""
    together, words_of = np.zeros((k, k)), np.zeros((vocabulary, topics.shape[1]))
    for d in range(len(scales)):
        if scales[d] != 0.0:
            _add(d, bags, weights, topics, scales[d], together, words_of)
    return together, words_of


@njit(cache=True, nogil=True)
def lengths_of(
    order: Array, groups: Array, bags: Bags, weights: Array, topics: Array, scales: Array, k: int, vocabulary: int
) -> Array:
    """The l2 norm of each group's summed scaled rows; group g is documents `order[groups[g]:groups[g + 1]]`."""
    ends, words, _ = bags
    wide = topics.shape[1]
    together, words_of = np.zeros((k, k)), np.zeros((vocabulary, wide))
    out = np.empty(len(groups) - 1)
    for g in range(len(out)):
        for d in order[groups[g] : groups[g + 1]]:
            _add(d, bags, weights, topics, scales[d], together, words_of)
        squares, lost = 0.0, 0.0
        for z in range(k):
            for j in range(k):
                squares, lost = plus(squares, lost, together[z, j] ** 2)
        for d in order[groups[g] : groups[g + 1]]:
            for i in range(ends[d], ends[d + 1]):
                for z in range(wide):
                    squares, lost = plus(squares, lost, words_of[words[i], z] ** 2)
                    words_of[words[i], z] = 0.0  # so that no word counts twice, and the next group begins at zero
        together[:] = 0.0
        out[g] = math.sqrt(squares)
    return out


@njit(cache=True, nogil=True)
def improve(topics: Array, together: Array, words_of: Array, sweeps: int) -> None:
    """Block coordinate descent on the topics (topics x words), one after the other, documents' topic weights being fixed."""
    k, width = topics.shape
    slope = np.empty(width)
    most = 0.0
    for z in range(k):
        most = max(most, together[z, z])
    for _ in range(sweeps):
        for z in range(k):
            if together[z, z] <= _LEAST_LENGTH * most:
                continue  # no document has this topic
            copy_row(words_of[z], slope)
            for j in range(k):
                for v in range(width):
                    slope[v] -= together[z, j] * topics[j, v]
            for v in range(width):
                topics[z, v] = max(topics[z, v] + slope[v] / together[z, z], 0.0)


WEIGHTINGS = {"counts": COUNTS, "log": LOG, "l2": L2}
Weighting = Annotated[str, one_of(*WEIGHTINGS)]
_MOST = 1e15  # a larger weight of a word in a topic is clamped: a coordinator may send anything
_PRIOR = 2.0  # words that topics of equal shares weigh as, where a document's other words are predicted
_SIZINGS = 100  # steps of expectation maximisation
_LEAST = 1e-6  # of a word's share of a topic, in shares of all words alike: no word is impossible


@dataclass(frozen=True)
class FactoredDocuments:
    """Documents, their weighed words, their topic weights, and half the squared distance that these leave."""

    held: BagDocuments
    weights: Array
    topics: Array  # documents x topics, no longer than the document
    losses: Array


@dataclass(frozen=True)
class FactoredTopics(MixedTopics):
    """A model whose topics are the rows of one non-negative factor, and a document's topic weights those of the other."""

    n_topics: Annotated[int, within(1, MOST_TOPICS)] = 50  # of the shared model
    weighting: Weighting = "l2"  # of a document's words: counts, log (of 1 + count) or l2 (counts over the length of their row)
    passes: Count = 50  # over a document's topics, where their weights do not settle earlier
    background: Inside = 0.2  # the share of the words' own frequencies in a document's words, for likelihoods

    def factor(self, state: State) -> Array:
        """The topics of a state: topics x words in float64, finite, not negative, and each of length 1 or 0."""
        raise NotImplementedError

    def frequencies(self, state: State) -> Array:
        """The words' own frequencies, as far as the state knows them; they sum to one."""
        raise NotImplementedError

    def prior_words(self, state: State) -> float:
        """As how many words equal shares of all topics weigh, where a document's other words are predicted."""
        return _PRIOR

    def topics(self, state: State) -> Array:
        topics = self.factor(state)
        smooth = topics / np.maximum(topics.sum(axis=1, keepdims=True), _LEAST) + _LEAST / topics.shape[1]
        found: Array = smooth / smooth.sum(axis=1, keepdims=True)
        return found

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares: how much of the words that its topic weights give comes from each topic.

        Where no topic has a word of the document, all topics have the same share.
        """
        topics = self.factor(state)
        parts = self.factored(topics, self.read(documents, topics.shape[1])).topics * topics.sum(axis=1)
        whole = parts.sum(axis=1, keepdims=True)
        return np.where(whole > 0, parts / np.where(whole > 0, whole, 1.0), 1.0 / self.n_topics)

    def completing(self, state: State) -> tuple[Array, Completion]:
        """Mixtures of all topics and of all words' frequencies. Before any word is seen, the mixture is these frequencies."""
        frequencies = self.frequencies(state)
        topics, sizes = as_frequent(self.topics(state), frequencies)
        by_word = np.ascontiguousarray(np.vstack([topics, frequencies]).T)
        sizes = np.append((1.0 - self.background) * sizes, self.background)
        return by_word, Completion(sizes, self.prior_words(state))

    def read(self, documents: Any, words: int) -> BagDocuments:
        """The documents as lists of words and counts over a vocabulary of so many words."""
        return BagDocuments.from_counts(documents.counts, words)

    def factored(self, topics: Array, held: BagDocuments) -> FactoredDocuments:
        """The documents with the topic weights that are nearest to them under these topics. No document depends on another."""
        weights = weighed(held.bags, WEIGHTINGS[self.weighting])
        found, losses = np.zeros((len(held), len(topics))), np.zeros(len(held))
        facts = (held.bags, weights, np.ascontiguousarray(topics.T), overlaps(topics), self.passes, found, losses)
        on_ranges(held.draw_ends, self.threads, solve, *facts)
        return FactoredDocuments(held, weights, found, losses)


def as_frequent(topics: Array, frequencies: Array) -> tuple[Array, Array]:
    """The topics and their sizes, so that together they have these frequencies of words. Rows of `topics` are shares above 0.

    Sizes are the likeliest for words of such frequencies. Then each word keeps its shares of topics, and has its frequency.
    """
    sizes = np.full(len(topics), 1.0 / len(topics))
    for _ in range(_SIZINGS):
        sizes = np.maximum(sizes * (topics @ (frequencies / (sizes @ topics))), _LEAST)
        sizes /= sizes.sum()
    joint = sizes[:, None] * topics
    joint *= frequencies / joint.sum(axis=0)
    masses = joint.sum(axis=1)
    return joint / masses[:, None], masses


def of_length_one(topics: Array, n_topics: int) -> Array:
    """Topics from a state, which may be forged: finite, not negative, and each of length 1, or 0 where nothing is left."""
    if topics.ndim != 2 or len(topics) != n_topics:
        raise BrokenPromise("table of topics", len(topics), n_topics)
    found = np.clip(np.nan_to_num(topics.astype(np.float64), nan=0.0), 0.0, _MOST)
    largest = found.max(axis=1, keepdims=True, initial=0.0)
    found = found / np.where(largest > 0, largest, 1.0)  # so that no square is too small or too large
    lengths = np.sqrt(np.square(found).sum(axis=1, keepdims=True))
    return np.ascontiguousarray(found / np.where(lengths > 0, lengths, 1.0))


def random_topics(topics: int, words: int, rng: np.random.Generator) -> Array:
    """Topics to begin with: of length 1, all words in all topics, and uneven, so that topics differ."""
    return of_length_one(rng.gamma(0.5, 1.0, (topics, words)) + 1e-3, topics)


_BY_CHANCE = 8.0  # words that equal shares of noised topics weigh as, if these began at random: seen on titles and snippets
_HEAVIEST = 1e3  # words by themselves weigh no more
Weight = Annotated[float, within(0, _HEAVIEST)]
_UNSEEN = 0.5  # of what a document adds to a word at most: more than was found, so that no word is impossible


@dataclass(frozen=True)
class NMF(FactoredTopics):
    """Documents are nearly sums of topics, and neither has a negative weight.

    In a round each document finds its topic weights under the shared topics, and gives two products: of its topic weights with
    themselves, and with its words. Given their sums the next topics follow by block coordinate descent, as they would from
    all documents in one place. A document keeps nothing between rounds.
    """

    sweeps: Count = 10  # over the topics in a round, documents' topic weights being fixed
    alone: Weight = 0.0  # weight of a document's words by themselves, beside their products with topics: they tell frequencies
    equal_rows: bool = False  # each document counts by so much that its row has length 1: no row is short beside its noise
    name: ClassVar[str] = "nmf"
    gains_topics: ClassVar[bool] = True
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 50
    budget_defaults: ClassVar[Mapping[str, Any]] = {"alone": 0.5, "equal_rows": True}
    budget_rounds: ClassVar[int] = 5

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Random topics, from the public seed; no word is known to be more frequent than another."""
        return {
            "weights": random_topics(self.n_topics, len(vocabulary), rng),
            "words": np.full(len(vocabulary), 1.0 / len(vocabulary)),
            "step": np.zeros(1, dtype=np.int64),
        }

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """The public topics, and public word frequencies where there are any."""
        fresh = self.start(vocabulary, rng)
        words = fresh["words"] if public.frequencies is None else public.frequencies
        return {**fresh, "weights": of_length_one(public.topics, self.n_topics), "words": words, **public.arrays()}

    def going_on(self, earlier: State, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """The earlier topics, and random ones beside them where the model has more."""
        fresh = self.start(vocabulary, rng)
        weights = np.concatenate([earlier["weights"], fresh["weights"][len(earlier["weights"]) :]])
        return {**fresh, "weights": weights, "words": earlier["words"]}

    def terms(self, state: State) -> Terms:
        """One row per document. Where it is scaled to length 1, or its words weigh 1 together, it has a bound of its own."""
        k, words = state["weights"].shape
        alone = (Block("alone", (words,)),) if self.alone else ()
        longest = 1.0 if self.equal_rows else float(np.sqrt(2.0 + self.alone**2)) if self.weighting == "l2" else np.inf
        return Terms((Block("together", (k, k)), Block("words", (k, words)), *alone), bits=64, l2=longest * (1 + 1e-9))

    def losses_of(self, state: State, documents: Any) -> DocumentProducts:
        topics = self.factor(state)
        found = self.factored(topics, self.read(documents, topics.shape[1]))
        return DocumentProducts(found, topics.shape[1], self.alone, self.equal_rows)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one pair of sums. A topic that no document has stays as it is."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        totals = Totals(rescaled=True)  # by sums over topics, whose weights differ by round
        if self.alone:
            totals = Totals(told=answer.total["alone"] / self.alone, deviation=answer.deviation / self.alone)
        noised = NoisedCounts.after(state, answer.total["words"], answer.deviation, totals=totals)
        together, words_of = _not_negative(answer.total, answer.deviation), np.maximum(answer.total["words"], 0.0)
        if noised:
            words_of = self._likely(state, noised, together)
        topics = self.factor(state).copy()
        improve(topics, together, words_of, self.sweeps)
        empty = ~topics.any(axis=1)
        topics[empty] = self.factor(state)[empty]
        unseen = 0.0 if noised else _UNSEEN
        found = {"weights": of_length_one(topics, self.n_topics), "words": _shares(words_of.sum(axis=0) + unseen)}
        return {**after, **found, **(noised.arrays() if noised else {})}

    def prior_words(self, state: State) -> float:
        """More where noise stands around topics that began at random: part of what sets them apart is chance."""
        by_chance = NoisedCounts.kept_in(state) is not None and PublicKnowledge.kept_in(state) is None
        return _BY_CHANCE if by_chance else super().prior_words(state)

    def factor(self, state: State) -> Array:
        return of_length_one(state["weights"], self.n_topics)

    def frequencies(self, state: State) -> Array:
        """The words' frequencies in the last sum."""
        return _shares(state["words"])

    def _likely(self, state: State, noised: NoisedCounts, together: Array) -> Array:
        """The likely products with words, of which the topics that were asked about give the expectation.

        Words are as frequent in them as all rounds together say, and their sum is that of this round.
        """
        deviation, (frequencies, vectors) = np.sqrt(noised.variance), public_words(state)
        totals = noised.word_totals(frequencies)
        least = float(np.max(deviation)) * np.sqrt(noised.counts.size)  # less than so much is nothing but noise
        totals = totals * (max(float(noised.counts.sum()), least) / totals.sum())
        return likely_counts(noised.counts, deviation, together @ self.factor(state), totals, vectors)


@dataclass(frozen=True)
class DocumentProducts:
    """The two products of each document as the gradient of a loss (contracts.Losses): no row is materialised.

    Beside them a row may hold the document's words by themselves, and each may be scaled to length 1.
    """

    found: FactoredDocuments
    words: int  # in the vocabulary
    alone: float = 0.0  # weight of a document's words by themselves; 0: its row does not hold them
    equal: bool = False  # whether every row that is not zero has length 1

    @property
    def values(self) -> Array:
        """Half the squared distance of each document from what its topics give."""
        return self.found.losses

    @cached_property
    def scales(self) -> Array:
        """By what each document's row is multiplied. It depends on no other document."""
        count = len(self.found.topics)
        if not self.equal:
            return np.ones(count)
        lengths = lengths_of(np.arange(count), np.arange(count + 1), *self._facts(np.ones(count)))
        return np.where(lengths > 0, 1.0 / np.where(lengths > 0, lengths, 1.0), 0.0)

    def norms(self, owners: Array) -> Array:
        order, heads = grouped(owners)
        return lengths_of(order, heads, *self._facts(self.scales))

    def gradient(self, weights: Array) -> Array:
        together, words_of = summed(*self._facts(weights.astype(np.float64) * self.scales))
        return np.concatenate([together.ravel(), words_of.T.ravel()])

    def _facts(self, scales: Array) -> tuple[Any, Array, Array, Array, int, int]:
        topics = self.found.topics
        by_themselves = np.full((len(topics), 1 if self.alone else 0), self.alone)
        shown = np.concatenate([topics, by_themselves], axis=1)
        return self.found.held.bags, self.found.weights, shown, scales, topics.shape[1], self.words


def _not_negative(total: Mapping[str, Array], deviation: float) -> Array:
    """The products of topics with themselves. Behind noise they are negative in no direction."""
    together = (total["together"] + total["together"].T) / 2.0
    if deviation == 0:
        return np.asarray(together)
    values, directions = np.linalg.eigh(together)
    edge = deviation * np.sqrt(2.0 * len(together))  # of a symmetric matrix of such noise
    return np.asarray((directions * np.maximum(values, edge)) @ directions.T)


def _shares(words: Array) -> Array:
    """Frequencies above zero that sum to one: a word that was never met counts as one in a million."""
    known = np.maximum(np.nan_to_num(words, nan=0.0, posinf=0.0), 0.0)
    smooth = known / max(float(known.sum()), 1e-300) + 1e-6 / len(words)
    found: Array = smooth / smooth.sum()
    return found
