"""Latent Dirichlet allocation by variational inference: each document gives its expected counts of words in topics.

See Blei, Ng and Jordan (2003); Hoffman, Blei and Bach (2010).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Answer, Array, Block, Public, State, Terms
from securetm.data_classes import dataclass, replace
from securetm.extras import later
from securetm.models.batches import grouped, on_ranges
from securetm.models.estimator import Count, OrNone, Part
from securetm.models.fixed_order import plus
from securetm.models.lda.counting import CountedTopics, earlier_counts
from securetm.models.mixed_topics import BagDocuments, Bags
from securetm.models.noisy_counts import Totals, likely_after, noised_at_home
from securetm.settings import Limit, within

special = later("scipy.special")

EXPONENTS = "word_exponents"  # the array of a state: the weight of a word is 2 to that power, so that no product is rounded
_MOST_EXPONENT = 4  # no exponent is further from 0
_POWER = -0.25  # of a word's frequency: the noise of its counts is then nearer to a fixed share of them


def exponents_for(frequencies: Array) -> Array:
    """The exponents for words of such frequencies, or counts. A word as frequent as the average one has exponent 0."""
    relative = np.maximum(frequencies, 1e-300) / max(float(frequencies.mean()), 1e-300)
    wanted = np.rint(_POWER * np.log2(np.maximum(relative, 1e-300)))
    return np.clip(wanted, -_MOST_EXPONENT, _MOST_EXPONENT).astype(np.int64)


def weights_in(state: State) -> Array:
    """The weights that a state asks for; a lie is clamped to what may be."""
    return np.ldexp(1.0, np.clip(state[EXPONENTS], -_MOST_EXPONENT, _MOST_EXPONENT).astype(np.int32))


_SETTLED = 1e-3  # of a topic's words in a document: the E-step ends where no topic moves further
_LEAST_DIVISOR = 1e-100  # of a divisor: the product of two such numbers is still above zero


@njit(cache=True, nogil=True, inline="always")
def _digamma(x: float) -> float:
    """The derivative of log gamma above 0: recurrence up to 8, where the asymptotic series is exact to twelve digits."""
    stepped = 0.0
    while x < 8.0:
        stepped += 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))))
    return math.log(x) - 0.5 / x - series - stepped


@njit(cache=True, nogil=True)
def settle(
    first: int, last: int, bags: Bags, chances: Array, scale: Array, alpha: float, passes: int, leanings: Array, losses: Array
) -> None:
    """The E-step of documents `first` to `last`: each topic's scaled weight in the document, and minus the document's bound.

    `chances` is words x topics: exp of the expected log probability of a word, scaled so that the largest of each word is 1;
    `scale` is the logarithm of each word's divisor. `leanings`, exp of the expected log topic shares, are scaled likewise:
    topic shares need ratios only.
    """
    ends, words, counts = bags
    k = chances.shape[1]
    gamma, fresh = np.empty(k), np.empty(k)
    for d in range(first, last):
        begin, end = ends[d], ends[d + 1]
        lean = leanings[d]
        gamma[:] = alpha + counts[begin:end].sum() / k
        for _ in range(passes):
            _lean(gamma, lean)
            fresh[:] = 0.0
            for i in range(begin, end):
                each = counts[i] / _chance(lean, chances[words[i]])
                for z in range(k):
                    fresh[z] += each * chances[words[i], z]
            moved = 0.0
            for z in range(k):
                now = alpha + lean[z] * fresh[z]
                moved = max(moved, abs(now - gamma[z]))
                gamma[z] = now
            if moved < _SETTLED:
                break
        top = _lean(gamma, lean)
        found = 0.0
        for i in range(begin, end):
            found += counts[i] * (math.log(_chance(lean, chances[words[i]])) + scale[words[i]] + top)
        losses[d] = -found - _prior(gamma, alpha, counts[begin:end].sum())


@njit(cache=True, nogil=True, inline="always")
def _lean(gamma: Array, lean: Array) -> float:
    """Sets `lean` to exp of the expected log topic shares, the largest 1. Returns the logarithm of the divisor, without the
    term that is the same for all topics."""
    top = -math.inf
    for z in range(len(gamma)):
        lean[z] = _digamma(gamma[z])
        top = max(top, lean[z])
    for z in range(len(gamma)):
        lean[z] = max(math.exp(lean[z] - top), _LEAST_DIVISOR)
    return top


@njit(cache=True, nogil=True, inline="always")
def _chance(lean: Array, chances: Array) -> float:
    total = 0.0
    for z in range(len(lean)):
        total += lean[z] * chances[z]
    return total


@njit(cache=True, nogil=True, inline="always")
def _prior(gamma: Array, alpha: float, length: float) -> float:
    """The bound's terms of a document's topic shares, and the term that `_lean` leaves out."""
    k, whole = len(gamma), 0.0
    for z in range(k):
        whole += gamma[z]
    common = _digamma(whole)
    bound = math.lgamma(k * alpha) - math.lgamma(whole) - length * common
    for z in range(k):
        bound += (alpha - gamma[z]) * (_digamma(gamma[z]) - common) + math.lgamma(gamma[z]) - math.lgamma(alpha)
    return bound


@njit(cache=True, nogil=True)
def lengths_of(
    order: Array, groups: Array, bags: Bags, chances: Array, leanings: Array, weights: Array, of_totals: float
) -> Array:
    """The l2 norm of each group's summed expected counts, each times the weight of its word; `of_totals` times the square of
    a word's weighted total is added to the squares.

    Group g is documents `order[groups[g]:groups[g + 1]]`.

    One buffer serves all groups. Only the entries that a group filled are cleared, so a long vocabulary costs nothing.
    """
    ends, words, counts = bags
    filled = np.zeros(chances.shape)
    out = np.empty(len(groups) - 1)
    for g in range(len(out)):
        for d in order[groups[g] : groups[g + 1]]:
            _count(filled, ends[d], ends[d + 1], words, counts, chances, leanings[d], 1.0)
        squares, lost = 0.0, 0.0
        for d in order[groups[g] : groups[g + 1]]:
            for i in range(ends[d], ends[d + 1]):
                total = 0.0
                for z in range(chances.shape[1]):
                    total += filled[words[i], z]
                    squares, lost = plus(squares, lost, (weights[words[i]] * filled[words[i], z]) ** 2)
                    filled[words[i], z] = 0.0
                squares, lost = plus(squares, lost, of_totals * (weights[words[i]] * total) ** 2)
        out[g] = math.sqrt(squares)
    return out


@njit(cache=True, nogil=True)
def expected(bags: Bags, chances: Array, leanings: Array, weights: Array) -> Array:
    """The weighted sum of all documents' expected counts, words x topics."""
    ends, words, counts = bags
    out = np.zeros(chances.shape)
    for d in range(len(ends) - 1):
        if weights[d] != 0.0:
            _count(out, ends[d], ends[d + 1], words, counts, chances, leanings[d], weights[d])
    return out


@njit(cache=True, nogil=True, inline="always")
def _count(out: Array, begin: int, end: int, words: Array, counts: Array, chances: Array, lean: Array, weight: float) -> None:
    for i in range(begin, end):
        each = weight * counts[i] / _chance(lean, chances[words[i]])
        for z in range(len(lean)):
            out[words[i], z] += each * lean[z] * chances[words[i], z]


_START = 100.0  # shape of the random counts at the start: their mean is 1, their deviation 0.1
_MOST = 1e15  # a larger count is clamped
_HEAVIEST = 1e3  # totals weigh no more
Weight = Annotated[float, within(0, _HEAVIEST)]
SharesAlpha = Annotated[
    float, Limit(lambda alpha: alpha == 0 or 1e-9 <= alpha < np.inf, "must be 0 (as alpha) or at least 1e-9, and finite")
]
_LEAST = 1e-100  # of a word's probability, relative to its best topic


@dataclass(frozen=True)
class VariationalLDA(CountedTopics):
    """LDA whose answer is a sum over documents of expected counts.

    In a round each document finds its own topic shares under the shared topics and gives the counts that it then expects; the
    next topics are their sum. Online LDA scales a batch to the size of the whole corpus, which no question may ask for. So each
    round keeps the earlier counts times 1 - `forgetting`, and adds its sum. Where `forgetting` is the share of the documents
    that a round draws, counts converge to those of the whole corpus. With 1 it is the batch algorithm: each sum replaces the
    one before.
    """

    passes: Count = 100  # over a document, where its shares do not settle earlier
    batch_size: OrNone = 0  # documents that each party is asked to draw; 0: all of them
    forgetting: Part = 1.0  # the share of the counts of earlier rounds that a round forgets
    repeats: OrNone = 0  # a word counts at most so often in a document during training; 0: as often as it occurs
    totals: Weight = 0.0  # weight of words' totals in the rows of the first round, beside counts: they have less noise then
    tempering: Part = 1.0  # the power of topics' shares of a word in documents: below 1 they hold to them less
    shares_alpha: SharesAlpha = 0.0  # alpha where a document's shares are inferred from finished topics; 0: that of training
    name: ClassVar[str] = "lda-vi"
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 50
    budget_defaults: ClassVar[Mapping[str, Any]] = {
        "repeats": 1,
        "eta": 1.0,
        "passes": 20,
        "totals": 1.0,  # where a plan does not say how many documents there are
        "tempering": 0.85,
        "shares_alpha": 0.5,
    }
    budget_rounds: ClassVar[int] = 3
    short_by_pairs: ClassVar[bool] = True

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Random counts, so that topics differ. The first sum replaces them."""
        counts = rng.gamma(_START, 1.0 / _START, (self.n_topics, len(vocabulary)))
        return {"counts": counts, "step": np.zeros(1, dtype=np.int64), EXPONENTS: np.zeros(len(vocabulary), dtype=np.int64)}

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """Also with weights for the words, where their frequencies are public."""
        begun = super().started(vocabulary, public, rng)
        return begun if public.frequencies is None else {**begun, EXPONENTS: exponents_for(public.frequencies)}

    def terms(self, state: State) -> Terms:
        """One row per document: real numbers whose sum is its number of words. A mechanism bounds the row."""
        return Terms((Block("counts", state["counts"].shape),), batch=self.batch_size, bits=64)

    def losses_of(self, state: State, documents: Any) -> DocumentBounds:
        """How often each word is expected to have each topic. Each document starts from equal shares of all topics."""
        return DocumentBounds.found(self, state, self.counted(documents, state["counts"].shape[1]))

    def update(self, state: State, answer: Answer) -> State:
        """The state after one sum: earlier counts fade and the sum is added. A noised sum is also kept as it came."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        kept, earlier = 1.0 - self.forgetting if state["step"][0] else 0.0, earlier_counts(state)
        before = state["counts"] - earlier
        weights = weights_in(state)
        stretch = self.stretch(state)
        told = Totals(stretch**2, rescaled=self.totals > 0 and state["step"][0] == 1)
        counts = _stretched(answer.total["counts"] / weights, 1.0 / stretch)
        found = likely_after(state, counts, answer.deviation / weights, before, kept, told)
        found = {**found, **noised_at_home(answer)}
        return {**after, **found, "counts": kept * before + found["counts"] + earlier}

    def weight_of_totals(self, state: State) -> float:
        """The weight of words' totals in the rows of the next round: after the first one, totals are known well enough."""
        return 0.0 if state["step"][0] else self.totals

    def stretch(self, state: State) -> float:
        """By what the mean of a word's counts over topics is multiplied in an answer, so that its total stands out of noise.

        That adds the square of `totals` times a word's total to a row's squares, as a block of totals would. It needs none.
        """
        return math.sqrt(1.0 + self.n_topics * self.weight_of_totals(state) ** 2)

    def smoothed(self, state: State) -> Array:
        """The parameters of the topics' Dirichlet distributions: counts and eta. Their shares are the mean of each topic."""
        self._check_topics(state["counts"])
        return np.clip(state["counts"], 0, _MOST) + self.eta

    def folding(self, state: State) -> tuple[Array, int]:
        return np.full(self.n_topics, self.alpha), self.passes

    def infer(self, state: State, documents: Any) -> Array:
        by_shares = replace(self, alpha=self.shares_alpha or self.alpha)
        return super(VariationalLDA, by_shares).infer(state, documents)

    def counted(self, documents: Any, words: int) -> BagDocuments:
        """The documents with repeated words limited as the settings say."""
        held = BagDocuments.from_counts(documents.counts, words)
        return held.limited(self.repeats) if self.repeats else held


@dataclass(frozen=True)
class DocumentBounds:
    """Minus the evidence lower bound of each document (contracts.Losses), at the topic shares that maximise it.

    The gradient of a document's bound in the topics' expected logarithms is its expected counts: at the maximum, the bound has
    no gradient in the shares (Danskin's theorem). So the row of a document, these counts times the weights of their words and
    with the mean of each word's counts stretched, is never materialised.
    """

    held: BagDocuments
    chances: Array  # words x topics: scaled probabilities, the largest of each word 1
    leanings: Array  # documents x topics, the largest of each document 1
    values: Array
    weights: Array  # of words: a count of a row is multiplied by that of its word
    of_totals: float  # weight of words' totals
    stretch: float  # of the mean of a word's counts

    @classmethod
    def found(cls, model: VariationalLDA, state: State, held: BagDocuments) -> DocumentBounds:
        """The bounds after the E-step of every document.

        Its chances are exp of the expected log probability of each word in each topic, scaled so that the largest of each word
        is 1: a word's topic shares need ratios only, and these stay exact where probabilities are too small for a float. Below
        a tempering of 1, each word's total is shared out among topics by a power of their shares, which come nearer.
        """
        dirichlet = model.smoothed(state)
        if model.tempering != 1:
            totals = dirichlet.sum(axis=0)
            shares = (dirichlet / totals) ** model.tempering
            dirichlet = shares * (totals / shares.sum(axis=0))
        logs = np.ascontiguousarray((special.digamma(dirichlet) - special.digamma(dirichlet.sum(axis=1, keepdims=True))).T)
        scale = logs.max(axis=1)
        chances = np.maximum(np.exp(logs - scale[:, None]), _LEAST)
        leanings, values = np.empty((len(held), model.n_topics)), np.zeros(len(held))
        facts = (held.bags, chances, scale, model.alpha, model.passes, leanings, values)
        on_ranges(held.draw_ends, model.threads, settle, *facts)
        weights, of_totals = weights_in(state), model.weight_of_totals(state)
        return cls(held, chances, leanings, values, weights, of_totals, model.stretch(state))

    def norms(self, owners: Array) -> Array:
        order, heads = grouped(owners)
        return lengths_of(order, heads, self.held.bags, self.chances, self.leanings, self.weights, self.of_totals**2)

    def gradient(self, weights: Array) -> Array:
        found = expected(self.held.bags, self.chances, self.leanings, weights.astype(np.float64))
        return _stretched(found.T * self.weights, self.stretch).ravel()


def _stretched(counts: Array, factor: float) -> Array:
    """The same counts with the mean of each word over topics multiplied."""
    if factor == 1:
        return counts
    found: Array = counts + (factor - 1.0) * counts.mean(axis=0)
    return found
