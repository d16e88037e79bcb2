"""What LDA and SentenceLDA share: topics are counts of words, and every round each document draws its topics anew.

How a draw is made is not here: each model says how it reads documents, and what it reads draws by itself.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Domain, Memory, State, Terms
from securetm.errors import BrokenPromise, check_setting
from securetm.models.estimator import Estimator, check_kinds
from securetm.models.gibbs.draws import MOST_TOPICS, Assignments, CountTable, SampledDocuments
from securetm.models.gibbs.lda_documents import LdaDocuments
from securetm.models.noisy_counts import NoisedCounts, above_noise, told_to_parties

MOST_COUNTED = 1e12  # what is larger came from no corpus, and products of such numbers would not be finite
_PASSES = 100  # of folding in, where a document's topics do not settle earlier


@dataclass(frozen=True)
class Counting(Estimator):
    """A model whose answer is a sum over documents: fields are public settings, all that it learns is in the state.

    In a round each document draws its topics anew, `sweeps` times, given the shared counts of the round before and its own,
    and gives its new counts. What the other documents draw meanwhile it learns a round later, as processors do in approximate
    distributed LDA (Newman et al. 2009); here each document is a processor, so given the state no document's counts depend on
    another's, and who holds which does not matter: a federation learns what one machine would, count for count.
    """

    n_topics: int = 50  # of the shared model
    alpha: float = 0.1  # of the symmetric Dirichlet prior of a document's topics
    eta: float = 0.01  # of a topic's words
    sweeps: int = 2  # of draws over all words in a round
    threads: int = 1  # changes nothing but the time it takes
    deviations: float = 2.0  # of noise, if a total has any: counts below stand for no more than their mean

    def __post_init__(self) -> None:
        check_kinds(self)
        check_setting(self, "n_topics", 1 <= self.n_topics <= MOST_TOPICS, f"must be 1 to {MOST_TOPICS}")
        check_setting(self, "alpha", 1e-9 <= self.alpha < math.inf, "must be at least 1e-9 and finite")
        check_setting(self, "eta", 1e-9 <= self.eta < math.inf, "must be at least 1e-9 and finite")
        check_setting(self, "sweeps", self.sweeps >= 1, "must be at least 1")
        check_setting(self, "threads", self.threads >= 1, "must be at least 1")
        check_setting(self, "deviations", 0 <= self.deviations < math.inf, "must be 0 or above, and finite")

    @abstractmethod
    def read(self, documents: Any, words: int) -> SampledDocuments:
        """The documents in the form that this model draws topics from, over a vocabulary of so many words."""

    # ---- contracts.TopicModel ----

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """A state without counts: the first draws of each document, from the seed, make topics differ."""
        return {
            "counts": np.zeros((self.n_topics, len(vocabulary))),
            "alpha": np.full(self.n_topics, self.alpha),
            "eta": np.full(1, self.eta),
            "step": np.zeros(1, dtype=np.int64),
            "seed": rng.integers(0, 2**64, 1, dtype=np.uint64),
        }

    def query(self, state: State) -> CountsQuery:
        """The next question: how often each word has each topic after every document has drawn its topics again."""
        return self.asked(state)

    def asked(self, state: State) -> CountsQuery:
        """The same question. A model that asks for more than the counts overrides this."""
        return CountsQuery(self, state)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one sum: its counts with noise removed. A noised sum is also kept as it came."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        counts = np.asarray(answer.total["counts"], dtype=np.float64)
        noised = NoisedCounts.after(state, counts, answer.deviation)
        kept = noised.arrays() if noised else {}
        return {**after, **kept, "counts": above_noise(counts, self.deviations, answer.deviation)}

    def for_party(self, state: State, party: str) -> State:  # noqa: ARG002 - every party gets the same
        """The counts, the priors, the step and the seed, without the noised sums that are kept for the end."""
        return told_to_parties(state)

    def topics(self, state: State) -> Array:
        """Each topic's words: its counts, smoothed by eta; from noised sums, the likely counts."""
        table, noised = self.table(state), NoisedCounts.kept_in(state)
        smooth = noised.likely() if noised else table.counts + table.eta
        shares: Array = smooth / smooth.sum(axis=1, keepdims=True)
        return shares

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares under the shared topics, without random draws (CVB0 with fixed topics)."""
        bags = LdaDocuments.of(documents.counts, self._words(state))
        return bags.shares(self._by_word(state), self.table(state).alpha, _PASSES, self.threads)

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given the topic shares of its seen words."""
        by_word, shares = self._by_word(state), self.infer(state, seen)
        return LdaDocuments.of(unseen.counts, len(by_word)).log_likelihood(by_word, shares, self.threads)

    # ---- what the query shares ----

    def table(self, state: State) -> CountTable:
        """The shared counts, clamped: a malicious coordinator may send negative or huge numbers."""
        if state["counts"].shape[0] != self.n_topics:
            raise BrokenPromise("table of topics", state["counts"].shape[0], self.n_topics)
        alpha, eta = (bounded(state[name], 1.0 / MOST_COUNTED) for name in ("alpha", "eta"))
        return CountTable(bounded(state["counts"]), alpha, float(eta[0]), int(state["step"][0]), int(state["seed"][0]))

    def redrawn(self, table: CountTable, held: SampledDocuments, old: Assignments) -> Assignments:
        """The topic of every draw after this round's sweeps."""
        topics = held.redrawn(table, old, self.sweeps, self.threads)
        return replace(old, steps=np.full(len(held), table.step), topics=topics)

    def _by_word(self, state: State) -> Array:
        return np.ascontiguousarray(self.topics(state).T)

    def _words(self, state: State) -> int:
        return int(state["counts"].shape[1])


@dataclass(frozen=True)
class CountsQuery:
    """Asks how often each word has each topic in all documents together, after they have drawn their topics again."""

    model: Counting
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document: whole numbers that add up to its number of words. A mechanism bounds that number."""
        return Terms((Block("counts", self.state["counts"].shape),), domain=Domain.INTEGER)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Draws use public noise per document, not the rng. The topics stay in the party's memory."""
        table = self.model.table(self.state)
        held, before = self.model.read(documents, table.words), Assignments.remembered(memory)
        fresh = self.model.redrawn(table, held, before.recall(held.draw_ends, held.names(documents.keys)))
        before.keep(memory, fresh)
        self.add_rows(held, fresh, table, clipped_sum, documents)

    def add_rows(
        self, held: SampledDocuments, fresh: Assignments, table: CountTable, clipped_sum: ClippedSum, documents: Any
    ) -> None:
        """Adds the counts of the drawn topics to the sum. Another question may add more."""
        held.add_rows(fresh.topics, table, clipped_sum, documents.persons)


def bounded(numbers: Array, least: float = 0.0) -> Array:
    """Numbers of a state, perhaps a forged one, clamped to what counts and priors may be."""
    found: Array = np.clip(np.nan_to_num(numbers, nan=0.0), least, MOST_COUNTED)
    return found
