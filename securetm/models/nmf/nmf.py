"""Non-negative matrix factorisation whose answer is a sum over documents: what a federation learns, one machine would.

It is not a federation and knows no privacy. It learns from documents through a query only (Lee and Seung 1999; the steps are
those of Kim, He and Park 2014).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Memory, Public, State, Terms
from securetm.errors import check_setting
from securetm.models.false_discoveries import stand_above
from securetm.models.likely_counts import likely_counts, likely_totals
from securetm.models.nmf.factored_topics import FactoredDocuments, FactoredTopics, of_length_one, random_topics
from securetm.models.nmf.nmf_kernels import improve, lengths_of, summed
from securetm.models.noisy_counts import NoisedCounts, noised_fit, public_words, told_to_parties
from securetm.models.public_knowledge import public_fits, without_public

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
    name: ClassVar[str] = "nmf"
    gains_topics: ClassVar[bool] = True
    federated_defaults: ClassVar[Mapping[str, Any]] = {"n_topics": 20}
    federated_rounds: ClassVar[int] = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "sweeps", self.sweeps >= 1, "must be at least 1")
        check_setting(self, "deviations", 0 <= self.deviations < np.inf, "must be 0 or above, and finite")

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
        noised = NoisedCounts.after(state, answer.total["words"], answer.deviation)
        together, words_of = self._cleared(state, answer.total, answer.deviation)
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

    def _cleared(self, state: State, total: Mapping[str, Array], deviation: float) -> tuple[Array, Array]:
        """The likely sums behind noise: products of topics are no longer negative in any direction, and those with words are
        expected to be what the topics that were asked about give."""
        together, words_of = (total["together"] + total["together"].T) / 2.0, total["words"]
        if deviation == 0:
            return together, np.maximum(words_of, 0)
        values, directions = np.linalg.eigh(together)
        edge = deviation * np.sqrt(2.0 * self.n_topics)  # of a symmetric matrix of such noise
        together = (directions * np.maximum(values, edge)) @ directions.T
        frequencies, vectors = public_words(state)
        totals = likely_totals(words_of.sum(axis=0), deviation * np.sqrt(len(words_of)), frequencies)
        return together, likely_counts(words_of, deviation, together @ self.factor(state), totals, vectors)


@dataclass(frozen=True)
class ProductsQuery:
    """Asks for the products of documents' topic weights with themselves and with their words, summed over all documents."""

    model: NMF
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document. Where its words weigh 1 together, its length has a bound of its own."""
        k, words = self.state["weights"].shape
        l2 = float(np.sqrt(2.0)) * (1 + 1e-9) if self.model.weighting == "l2" else np.inf
        return Terms((Block("together", (k, k)), Block("words", (k, words))), bits=64, l2=l2)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Draws and remembers nothing."""
        topics = self.model.factor(self.state)
        found = self.model.factored(topics, self.model.read(documents, topics.shape[1]))
        rows, count = DocumentProducts(found, topics.shape[1]), len(documents)
        clipped_sum.add_losses(rows, np.arange(count), np.zeros((count, 0)))


@dataclass(frozen=True)
class DocumentProducts:
    """The two products of each document as the gradient of a loss (contracts.Losses): no row is materialised."""

    found: FactoredDocuments
    words: int  # in the vocabulary

    @property
    def values(self) -> Array:
        """Half the squared distance of each document from what its topics give."""
        return self.found.losses

    def norms(self, owners: Array) -> Array:
        """The l2 norm of each owner's products, over all its documents."""
        order = np.argsort(owners, kind="stable")
        heads = np.append(np.flatnonzero(np.diff(owners[order], prepend=owners[order[:1]] - 1)), len(order))
        return lengths_of(order, heads, *self._facts, self.words)

    def gradient(self, weights: Array) -> Array:
        """The weighted sum of the documents' products, flat."""
        together, words_of = summed(*self._facts, weights.astype(np.float64), self.words)
        return np.concatenate([together.ravel(), words_of.T.ravel()])

    @property
    def _facts(self) -> tuple[Any, Array, Array]:
        return self.found.held.bags, self.found.weights, self.found.topics


def _shares(words: Array) -> Array:
    """Frequencies above zero that sum to one: a word that was never met counts as one in a million."""
    known = np.maximum(np.nan_to_num(words, nan=0.0, posinf=0.0), 0.0)
    smooth = known / max(float(known.sum()), 1e-300) + 1e-6 / len(words)
    shares: Array = smooth / smooth.sum()
    return shares
