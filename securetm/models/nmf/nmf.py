"""Non-negative matrix factorisation whose answer is a sum over documents: what a federation learns, one machine would.

It is not a federation and knows no privacy. It learns from documents through a query only (Lee and Seung 1999; the steps are
those of Kim, He and Park 2014).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Memory, Public, State, Terms
from securetm.errors import check_setting
from securetm.models.false_discoveries import stand_above
from securetm.models.likely_counts import likely_counts
from securetm.models.nmf.factored_topics import FactoredDocuments, FactoredTopics, of_length_one, random_topics
from securetm.models.nmf.nmf_kernels import improve, lengths_of, summed
from securetm.models.noisy_counts import NoisedCounts, Totals, noised_fit, public_words, told_to_parties
from securetm.models.public_knowledge import PublicKnowledge, public_fits, without_public

_BY_CHANCE = 8.0  # words that equal shares of noised topics weigh as, if these began at random: seen on titles and snippets
_HEAVIEST = 1e3  # words by themselves weigh no more
_UNSEEN = 0.5  # of what a document adds to a word at most: more than was found, so that no word is impossible


@dataclass(frozen=True)
class NMF(FactoredTopics):
    """Documents are nearly sums of topics, and neither has a negative weight.

    In a round each document finds its topic weights under the shared topics, and gives two products: of its topic weights with
    themselves, and with its words. Given their sums the next topics follow by block coordinate descent, as they would from
    all documents in one place. A document keeps nothing between rounds.
    """

    sweeps: int = 10  # over the topics in a round, documents' topic weights being fixed
    deviations: float = 2.0  # changes nothing: earlier plans name it. Estimates know their noise
    alone: float = 0.0  # weight of a document's words by themselves, beside their products with topics: they tell frequencies
    equal_rows: bool = False  # each document counts by so much that its row has length 1: no row is short beside its noise
    name: ClassVar[str] = "nmf"
    gains_topics: ClassVar[bool] = True
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 50
    budget_defaults: ClassVar[Mapping[str, Any]] = {"alone": 0.5, "equal_rows": True}
    budget_rounds: ClassVar[int] = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "sweeps", self.sweeps >= 1, "must be at least 1")
        check_setting(self, "deviations", 0 <= self.deviations < np.inf, "must be 0 or above, and finite")
        check_setting(self, "alone", 0 <= self.alone <= _HEAVIEST, f"must be 0 to {_HEAVIEST:g}")

    # ---- contracts.TopicModel ----

    @property
    def starts_public(self) -> bool:
        """True."""
        return True

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

    def fits(self, state: State, words: int) -> bool:
        """Also of a state that began with public topics, or keeps a noised sum."""
        kept = public_fits(state, self.n_topics, words) and noised_fit(state, self.n_topics, words)
        return kept and super().fits(without_public(told_to_parties(state)), words)

    def going_on(self, earlier: State, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """The earlier topics, and random ones beside them where the model has more."""
        fresh = self.start(vocabulary, rng)
        weights = np.concatenate([earlier["weights"], fresh["weights"][len(earlier["weights"]) :]])
        return {**fresh, "weights": weights, "words": earlier["words"]}

    def query(self, state: State) -> ProductsQuery:
        """The next question: the sums of two products over all documents."""
        return ProductsQuery(self, state)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one pair of sums. A topic that no document has stays as it is."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        noised = NoisedCounts.after(state, answer.total["words"], answer.deviation, totals=self._totals_in(answer))
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

    def for_party(self, state: State, party: str) -> State:  # noqa: ARG002 - every party gets the same
        """The state without public knowledge and without the noised sum."""
        return without_public(told_to_parties(state))

    def prior_words(self, state: State) -> float:
        """More where noise stands around topics that began at random: part of what sets them apart is chance."""
        by_chance = NoisedCounts.kept_in(state) is not None and PublicKnowledge.kept_in(state) is None
        return _BY_CHANCE if by_chance else super().prior_words(state)

    def above_noise(self, state: State) -> Array | None:
        """Which weights of words in topics, in the last noised sum, stand above its noise; None where no sum had any."""
        noised = NoisedCounts.kept_in(state)
        return None if noised is None else stand_above(noised.counts, np.sqrt(noised.variance))

    def factor(self, state: State) -> Array:
        """The topics of the state."""
        return of_length_one(state["weights"], self.n_topics)

    def frequencies(self, state: State) -> Array:
        """The words' frequencies in the last sum."""
        return _shares(state["words"])

    def _totals_in(self, answer: Answer) -> Totals:
        """How an answer tells the totals of words: by themselves, or by sums over topics, whose weights differ by round."""
        assert answer.total is not None
        if not self.alone:
            return Totals(rescaled=True)
        return Totals(told=answer.total["alone"] / self.alone, deviation=answer.deviation / self.alone)

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
class ProductsQuery:
    """Asks for the products of documents' topic weights with themselves and with their words, summed over all documents."""

    model: NMF
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document. Where it is scaled to length 1, or its words weigh 1 together, it has a bound of its own."""
        k, words = self.state["weights"].shape
        alone = (Block("alone", (words,)),) if self.model.alone else ()
        return Terms((Block("together", (k, k)), Block("words", (k, words)), *alone), bits=64, l2=self._longest * (1 + 1e-9))

    @property
    def _longest(self) -> float:
        if self.model.equal_rows:
            return 1.0
        return float(np.sqrt(2.0 + self.model.alone**2)) if self.model.weighting == "l2" else np.inf

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Draws and remembers nothing."""
        topics = self.model.factor(self.state)
        found = self.model.factored(topics, self.model.read(documents, topics.shape[1]))
        rows = DocumentProducts(found, topics.shape[1], self.model.alone, self.model.equal_rows)
        clipped_sum.add_losses(rows, np.arange(len(documents)), np.zeros((len(documents), 0)))


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
        """The l2 norm of each owner's row, over all its documents."""
        order = np.argsort(owners, kind="stable")
        heads = np.append(np.flatnonzero(np.diff(owners[order], prepend=owners[order[:1]] - 1)), len(order))
        return lengths_of(order, heads, *self._facts(self.scales))

    def gradient(self, weights: Array) -> Array:
        """The weighted sum of the documents' rows, flat."""
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
    shares: Array = smooth / smooth.sum()
    return shares
