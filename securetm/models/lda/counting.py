"""Models whose topics are counts of words: variational LDA, and LDA and SentenceLDA, whose documents draw topics every round.

A token of LDA, or a sentence of SentenceLDA, is a draw. All draws stay at the party; only the sum over documents leaves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Domain, Memory, Public, Rows, State, Terms
from securetm.data_classes import dataclass, replace
from securetm.errors import BrokenPromise
from securetm.extras import sparse
from securetm.models.batches import chunks, places_among, with_zero
from securetm.models.document_noise import starts_of
from securetm.models.estimator import Count, Smoothing
from securetm.models.mixed_topics import EARLIER, WEIGHT, Completion, MixedTopics
from securetm.models.noisy_counts import NoisedCounts, behind_noise, likely_after, noised_at_home
from securetm.settings import within

MOST_COUNTED = 1e12  # no corpus gives a larger count, and products of larger numbers would not be finite
_SPREAD = 0.1  # shape of the noise that makes new topics differ: the smaller, the fewer words stand out


def earlier_counts(state: State) -> Array | float:
    """The counts that an update adds to those of the documents; 0 where the training began anew."""
    return state[WEIGHT][0] * state[EARLIER] if EARLIER in state else 0.0


_UNSEEN = 0.5  # uses more than were found (Krichevsky and Trofimov 1981): no word is impossible
_SUREST = 1.0 - 1e-6  # of the shares as they were found: no topic excludes a word
_TINY = 1e-12


def likely_shares(counts: Array) -> Array:
    """Topics x words, summing to one: how often a use of any word is one of this word under this topic.

    Words have their totals. A word's shares of topics lie as far from those of all words as they were found, times what is not
    explained by chance (James and Stein 1961): so many uses, drawn from the shares of all words, would lie apart by one less
    than the number of topics, over the number of uses, in squares over the shares.
    """
    found = np.clip(np.nan_to_num(counts, nan=0.0), 0.0, _MOST)
    uses = found.sum(axis=0)
    topics = found.sum(axis=1) + _TINY
    usual = (topics / topics.sum())[:, None]
    apart = np.where(uses > 0, found / np.maximum(uses, _TINY) - usual, 0.0)
    squares = (np.square(apart) / usual).sum(axis=0)
    by_chance = (len(found) - 1) / np.maximum(uses, _TINY)
    believed = np.clip(1.0 - by_chance / np.maximum(squares, _TINY), 0.0, _SUREST)
    joint = (uses + _UNSEEN) * (usual + believed * apart)
    result: Array = joint / joint.sum()
    return result


MOST_TOPICS = 1 << 16  # a draw's topic is kept in two bytes
_LEAST, _MOST = 1e-9, 1e15  # a count that noise left is clamped to that range
_FIRM = 100.0  # counts of a word in a topic of a public start, on average: so many that eta hardly moves its shares


@dataclass(frozen=True)
class CountedTopics(MixedTopics):
    """A model whose state holds counts of words in topics; its fields are public settings."""

    gains_topics: ClassVar[bool] = True

    n_topics: Annotated[int, within(1, MOST_TOPICS)] = 50  # of the shared model
    alpha: Smoothing = 0.1  # of the symmetric Dirichlet prior of a document's topics
    eta: Smoothing = 0.01  # of a topic's words

    @abstractmethod
    def smoothed(self, state: State) -> Array:
        """The counts of a state with eta added. They are clamped: a malicious coordinator may send anything."""

    def found_counts(self, state: State) -> Array:
        """The counts of a state as they are."""
        self._check_topics(state["counts"])
        return state["counts"]

    def started(self, vocabulary: Sequence[str], public: Public, rng: np.random.Generator) -> State:
        """The public topics as counts, which the first sum replaces. Estimates from noised sums read what is public."""
        return {**self.start(vocabulary, rng), "counts": public.counts(_FIRM), **public.arrays()}

    def going_on(self, earlier: State, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """The earlier counts, as a prior of the same topics; further topics begin as noise around word frequencies."""
        fresh, counts = self.start(vocabulary, rng), np.asarray(earlier["counts"], dtype=np.float64)
        known = np.clip(np.nan_to_num(counts, nan=0.0), 0.0, MOST_COUNTED)  # it comes out of a file
        new = known.mean(axis=0) * rng.gamma(_SPREAD, 1.0 / _SPREAD, (self.n_topics - len(known), known.shape[1]))
        before = np.concatenate([known, np.zeros(new.shape)])
        return {**fresh, "counts": np.concatenate([known, new]), EARLIER: before, WEIGHT: np.ones(1)}

    def weighing_earlier(self, state: State, weight: float) -> State:
        return {**state, WEIGHT: np.full(1, float(weight))} if WEIGHT in state else state

    def topics(self, state: State) -> Array:
        """Each topic's words: its counts, smoothed by eta; where sums had noise, the likely counts behind it, as they are."""
        noised = NoisedCounts.kept_in(state) is not None
        counts = np.clip(state["counts"], _LEAST, _MOST) if noised else self.smoothed(state)
        found: Array = counts / counts.sum(axis=1, keepdims=True)
        return found

    def completing(self, state: State) -> tuple[Array, Completion]:
        """Around topics' sizes; a learned alpha knows these."""
        by_word, found = self._predicting(state)
        alpha = self.folding(state)[0]
        return by_word, Completion.around(by_word, alpha if np.ptp(alpha) > 0 else found, float(alpha.sum()))

    def _predicting(self, state: State) -> tuple[Array, Array]:
        """Words x topics by which other words are predicted, and topics' sizes.

        Counts behind noise are likely ones already. Where words were noised at home, how often one occurs tells little of how
        sure its topics are.
        """
        if behind_noise(state):
            return self.by_word(state), self.smoothed(state).sum(axis=1)
        joint = likely_shares(self.found_counts(state))
        sizes = joint.sum(axis=1)
        return np.ascontiguousarray((joint / sizes[:, None]).T), sizes

    def _check_topics(self, counts: Array) -> None:
        if len(counts) != self.n_topics:
            raise BrokenPromise("table of topics", len(counts), self.n_topics)


# ---- models whose documents draw topics -------------------------------------------------------------------------------


NEVER = -2  # the step of a document that no state can have counted
_MINE = "draws/"  # in the party's memory, beside what others keep there
_DRAWS = 0  # the stream of a document's noise
_CHUNK = 1 << 20  # words whose rows are added at a time, so that memory does not grow with the corpus


class RoundFacts(NamedTuple):
    """The weights of one round's draws, and what is known of each document, as the kernels read them."""

    noise: Array  # where each document's stream of public noise begins
    known: Array  # which documents have topics already
    counted: Array  # which of them are in the table
    shared: Array  # the table, vocabulary x topics
    totals: Array  # of each topic
    alpha: Array
    eta: float
    smoothing: float  # eta of all words together


@dataclass(frozen=True)
class CountTable:
    """The weights of one round's draws: counts of words in topics, never below zero, and the priors."""

    counts: Array  # float64, topics x words
    alpha: Array  # of the Dirichlet prior of a document's topics, one for each
    eta: float  # of a topic's words
    step: int
    seed: int

    @property
    def topics(self) -> int:
        return int(self.counts.shape[0])

    @property
    def words(self) -> int:
        return int(self.counts.shape[1])

    @cached_property
    def by_word(self) -> Array:
        """Words x topics, each count with eta added: a draw reads whole rows of it."""
        return np.ascontiguousarray(self.counts.T + self.eta)

    @cached_property
    def totals(self) -> Array:
        """The sum of each topic's counts, without eta."""
        found: Array = self.counts.sum(axis=1)
        return found

    def noise(self, names: Array) -> Array:
        """Where each document's stream of public noise begins. It depends on the name: two documents may have one key."""
        return starts_of(self.seed, self.step, names, _DRAWS)

    def facts(self, old: Assignments, shared: Array) -> RoundFacts:
        """The facts of this round for a kernel that reads the table in the form `shared`."""
        of_documents = (self.noise(old.names), old.known(), old.steps == self.step - 1)  # counted, a round before
        return RoundFacts(*of_documents, shared, self.totals, self.alpha, self.eta, self.eta * self.words)


@dataclass(frozen=True)
class Assignments:
    """The topic of every draw of some documents, and at which step each document's counts were last given."""

    names: Array
    steps: Array
    draw_ends: Array
    topics: Array

    @classmethod
    def remembered(cls, memory: Memory) -> Self:
        """The assignments in the party's memory; none at first."""
        if _MINE + "names" not in memory:
            return cls(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.uint16))
        return cls(*(memory[_MINE + part] for part in ("names", "steps", "draw_ends", "topics")))

    def recall(self, draw_ends: Array, names: Array) -> Assignments:
        """The topics of these documents, in their order. A new document has the step `NEVER` and topic 0 everywhere."""
        if np.array_equal(names, self.names):  # as in most rounds
            return Assignments(names, self.steps, draw_ends, self.topics)
        topics = np.zeros(int(draw_ends[-1]), dtype=np.uint16)
        steps = np.full(len(names), NEVER, dtype=np.int64)
        met, place = places_among(self.names, names)
        steps[met] = self.steps[place]
        topics[_places(draw_ends, met)] = self.topics[_places(self.draw_ends, place)]
        return Assignments(names, steps, draw_ends, topics)

    def known(self) -> Array:
        found: Array = self.steps != NEVER
        return found

    def keep(self, memory: Memory, fresh: Assignments) -> None:
        """Stores the fresh topics in the party's memory, and keeps those of documents that took no part this time."""
        again = np.array_equal(self.names, fresh.names)
        others = np.flatnonzero(~np.isin(self.names, fresh.names)) if not again else np.zeros(0, dtype=np.int64)
        lengths = np.concatenate([np.diff(fresh.draw_ends), np.diff(self.draw_ends)[others]])
        memory[_MINE + "names"] = np.concatenate([fresh.names, self.names[others]])
        memory[_MINE + "steps"] = np.concatenate([fresh.steps, self.steps[others]])
        memory[_MINE + "draw_ends"] = with_zero(np.cumsum(lengths))
        memory[_MINE + "topics"] = np.concatenate([fresh.topics, self.topics[_places(self.draw_ends, others)]])


@dataclass(frozen=True)
class SampledDocuments(ABC):
    """A party's documents in the form that one model draws topics from."""

    draw_ends: Array  # where each document's draws begin, and where the last one's end

    def __len__(self) -> int:
        return len(self.draw_ends) - 1

    @property
    def lengths(self) -> Array:
        """Running sums of words by document: the cost of drawing topics and of adding rows."""
        return self.draw_ends

    @abstractmethod
    def names(self, keys: Array) -> Array:
        """The name under which each document's topics are remembered."""

    @abstractmethod
    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        """The topic of every draw after so many sweeps. A document's topics depend on no other document."""

    @abstractmethod
    def counted(self, topics: Array, table: CountTable) -> Array:
        """How often each word has each topic in all these documents together: topics x words."""

    @abstractmethod
    def rows(self, documents: Array, topics: Array, table: CountTable) -> Rows:
        """The topic-word counts of some documents, one row each."""

    def chunks(self, persons: Array | None) -> Iterator[Array]:
        """The documents whose rows are added at a time. All documents of a person are in one chunk."""
        return chunks(self.lengths, persons, _CHUNK)

    def add_rows(
        self, topics: Array, table: CountTable, clipped_sum: ClippedSum, persons: Array | None, beside: Any = None
    ) -> None:
        """Adds each document's counts to a clipped sum, as one row that ends with the document's row of `beside`."""
        for documents in self.chunks(persons):
            rows = self.rows(documents, topics, table)
            clipped_sum.add(rows if beside is None else sparse.hstack([rows, beside[documents]], format="csr"), documents)


def _places(ends: Array, documents: Array) -> Array:
    """The places of these documents' draws, one after the other."""
    lengths = np.diff(ends)[documents]
    shift = np.repeat(ends[documents] - np.cumsum(lengths) + lengths, lengths)
    return shift + np.arange(len(shift))


PASSES = 100  # of folding in, where a document's topics do not settle earlier


@dataclass(frozen=True)
class Counting(CountedTopics):
    """A model whose answer is a sum over documents of the counts of their drawn topics.

    In a round each document draws its topics anew, `sweeps` times, given the shared counts of the round before and its own, and
    gives its new counts. It learns of the other documents' draws a round later, as processors do in approximate distributed LDA
    (Newman et al. 2009); here each document is a processor. So given the state no document's counts depend on another document,
    nor on who holds it: a federation learns what one machine would, count for count.
    """

    sweeps: Count = 2  # of draws over all words in a round

    @abstractmethod
    def read(self, documents: Any, words: int) -> SampledDocuments:
        """The documents in the form that this model draws topics from, over a vocabulary of so many words."""

    def start(self, vocabulary: Sequence[str], rng: np.random.Generator) -> State:
        """A state without counts: the first draws of each document, from the seed, make topics differ."""
        return {
            "counts": np.zeros((self.n_topics, len(vocabulary))),
            "alpha": np.full(self.n_topics, self.alpha),
            "eta": np.full(1, self.eta),
            "step": np.zeros(1, dtype=np.int64),
            "seed": rng.integers(0, 2**64, 1, dtype=np.uint64),
        }

    def terms(self, state: State) -> Terms:
        """One row per document: whole numbers whose sum is its number of words. A mechanism bounds that number."""
        return Terms((Block("counts", state["counts"].shape),), domain=Domain.INTEGER)

    def answer(self, state: State, documents: Any, clipped_sum: ClippedSum, memory: Memory) -> None:
        """How often each word has each topic after every document has drawn its topics again; these stay in the memory."""
        table = self.table(state)
        held, before = self.read(documents, table.words), Assignments.remembered(memory)
        old = before.recall(held.draw_ends, held.names(documents.keys))
        topics = held.redrawn(table, old, self.sweeps, self.threads)
        fresh = replace(old, steps=np.full(len(held), table.step), topics=topics)
        before.keep(memory, fresh)
        held.add_rows(topics, table, clipped_sum, documents.persons, self.beside(held, fresh, table, documents))

    def beside(self, held: SampledDocuments, fresh: Assignments, table: CountTable, documents: Any) -> Any:
        """What each document gives beside its counts, as a sparse row: here nothing."""
        return None

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
        table = self.table(state)
        return table.counts + table.eta

    def found_counts(self, state: State) -> Array:
        """The shared counts, or those of the topics that are held."""
        return self.table(state).counts

    def folding(self, state: State) -> tuple[Array, int]:
        return self.table(state).alpha, PASSES

    def table(self, state: State) -> CountTable:
        """The shared counts, clamped: a malicious coordinator may send negative or huge numbers."""
        self._check_topics(state["counts"])
        alpha, eta = (bounded(state[name], 1.0 / MOST_COUNTED) for name in ("alpha", "eta"))
        return CountTable(bounded(state["counts"]), alpha, float(eta[0]), int(state["step"][0]), int(state["seed"][0]))


def bounded(numbers: Array, least: float = 0.0) -> Array:
    """Numbers of a state, which may be forged, clamped to the range of counts and priors."""
    found: Array = np.clip(np.nan_to_num(numbers, nan=0.0), least, MOST_COUNTED)
    return found
