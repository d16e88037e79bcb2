"""What LDA and SentenceLDA share: topics are counts of words, and every round each document draws its topics anew.

How a topic is drawn is not here: each model says how it reads documents, and the documents draw.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Domain, Memory, State, Terms
from securetm.errors import check_setting
from securetm.models.earlier_counts import earlier_counts
from securetm.models.gibbs.counted_topics import CountedTopics
from securetm.models.gibbs.draws import Assignments, CountTable, SampledDocuments
from securetm.models.noisy_counts import likely_after, noised_at_home

MOST_COUNTED = 1e12  # no corpus gives a larger count, and products of larger numbers would not be finite
PASSES = 100  # of folding in, where a document's topics do not settle earlier


@dataclass(frozen=True)
class Counting(CountedTopics):
    """A model whose answer is a sum over documents of the counts of their drawn topics.

    In a round each document draws its topics anew, `sweeps` times, given the shared counts of the round before and its own, and
    gives its new counts. It learns of the other documents' draws a round later, as processors do in approximate distributed LDA
    (Newman et al. 2009); here each document is a processor. So given the state no document's counts depend on another document,
    nor on who holds it: a federation learns what one machine would, count for count.
    """

    sweeps: int = 2  # of draws over all words in a round

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "sweeps", self.sweeps >= 1, "must be at least 1")

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
        return CountsQuery(self, state)

    def update(self, state: State, answer: Answer) -> State:
        """The state after one sum: its counts with noise removed. A noised sum is also kept as it came."""
        after = {**state, "step": state["step"] + 1}
        if not answer.total:
            return after
        counts = np.asarray(answer.total["counts"], dtype=np.float64)
        earlier = earlier_counts(state)
        found = likely_after(state, counts, answer.deviation, state["counts"] - earlier)
        return {**after, **found, **noised_at_home(answer), "counts": found["counts"] + earlier}

    def going_on(self, earlier: State, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """Also with the priors that were learned."""
        state = super().going_on(earlier, vocabulary, rng)
        alpha = np.concatenate([earlier["alpha"], state["alpha"][len(earlier["alpha"]) :]])
        return {**state, "alpha": alpha, "eta": earlier["eta"]}

    def smoothed(self, state: State) -> Array:
        """The counts of a state with eta added."""
        table = self.table(state)
        return table.counts + table.eta

    def found_counts(self, state: State) -> Array:
        """The shared counts, or those of the topics that are held."""
        return self.table(state).counts

    def folding(self, state: State) -> tuple[Array, int]:
        """The learned alpha, and 100 passes."""
        return self.table(state).alpha, PASSES

    # ---- for the query ----

    def table(self, state: State) -> CountTable:
        """The shared counts, clamped: a malicious coordinator may send negative or huge numbers."""
        self._check_topics(state["counts"])
        alpha, eta = (bounded(state[name], 1.0 / MOST_COUNTED) for name in ("alpha", "eta"))
        return CountTable(bounded(state["counts"]), alpha, float(eta[0]), int(state["step"][0]), int(state["seed"][0]))

    def redrawn(self, table: CountTable, held: SampledDocuments, old: Assignments) -> Assignments:
        """The topic of every draw after this round's sweeps."""
        topics = held.redrawn(table, old, self.sweeps, self.threads)
        return replace(old, steps=np.full(len(held), table.step), topics=topics)


@dataclass(frozen=True)
class CountsQuery:
    """Asks how often each word has each topic in all documents together, after they have drawn their topics again."""

    model: Counting
    state: State

    @property
    def terms(self) -> Terms:
        """One row per document: whole numbers whose sum is its number of words. A mechanism bounds that number."""
        return Terms((Block("counts", self.state["counts"].shape),), domain=Domain.INTEGER)

    def answer(self, documents: Any, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Draws use public noise per document, not the rng. The topics stay in the party's memory."""
        table = self.model.table(self.state)
        held, before = self.model.read(documents, table.words), Assignments.remembered(memory)
        fresh = self.model.redrawn(table, held, before.recall(held.draw_ends, held.names(documents.keys)))
        before.keep(memory, fresh)
        held.add_rows(fresh.topics, table, clipped_sum, documents.persons, self.beside(held, fresh, table, documents))

    def beside(self, held: SampledDocuments, fresh: Assignments, table: CountTable, documents: Any) -> Any:  # noqa: ARG002
        """What each document gives beside its counts, as a sparse row: here nothing."""
        return None


def bounded(numbers: Array, least: float = 0.0) -> Array:
    """Numbers of a state, which may be forged, clamped to the range of counts and priors."""
    found: Array = np.clip(np.nan_to_num(numbers, nan=0.0), least, MOST_COUNTED)
    return found
