"""The draws of a model: a token of LDA, or a sentence of SentenceLDA, has one topic. It draws no random number.

All of it stays at the party. Only the sum over documents leaves, which `CountsQuery` adds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array, ClippedSum, Memory, Rows
from securetm.models.document_noise import starts_of

NEVER = -2  # the step of a document that no state can have counted
MOST_TOPICS = 1 << 16  # a draw's topic is kept in two bytes
_MINE = "draws/"  # in the party's memory, beside what others keep there
_DRAWS = 0  # the stream of a document's noise
_A_THREAD = 2_000  # words, from which on another thread is worth its start
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
        """The number of topics."""
        return int(self.counts.shape[0])

    @property
    def words(self) -> int:
        """The number of words."""
        return int(self.counts.shape[1])

    @cached_property
    def by_word(self) -> Array:
        """Words x topics, each count with eta added: a draw reads whole rows of it."""
        return np.ascontiguousarray(self.counts.T + self.eta)

    @cached_property
    def totals(self) -> Array:
        """The sum of each topic's counts, without eta."""
        whole: Array = self.counts.sum(axis=1)
        return whole

    def noise(self, names: Array) -> Array:
        """Where each document's stream of public noise begins. It depends on the name: two documents may have one key."""
        return starts_of(self.seed, self.step, names, _DRAWS)

    def facts(self, old: Assignments, shared: Array) -> RoundFacts:
        """The facts of this round for a kernel that reads the table in the form `shared`."""
        of_documents = (self.noise(old.names), old.known(), old.counted(self.step))
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
        if len(self.names) and len(names):
            order = np.argsort(self.names, kind="stable")
            place = order[np.minimum(np.searchsorted(self.names[order], names), len(order) - 1)]
            met = np.flatnonzero(self.names[place] == names)
            steps[met] = self.steps[place[met]]
            topics[_places(draw_ends, met)] = self.topics[_places(self.draw_ends, place[met])]
        return Assignments(names, steps, draw_ends, topics)

    def known(self) -> Array:
        """Which documents have topics already."""
        met: Array = self.steps != NEVER
        return met

    def counted(self, step: int) -> Array:
        """Which documents are in that step's table: those that gave their counts a round before."""
        included: Array = self.steps == step - 1
        return included

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


def on_ranges(weights: Array, threads: int, work: Callable[..., None], *facts: Any) -> None:
    """Calls `work(first, last, *facts)` on ranges of documents of about equal weight, one range per thread.

    `weights` are running sums: where each document begins and where the last one ends. No document's result depends on the
    ranges. What is little is done at once: starting a thread would take longer.
    """
    parts = list(ranges(weights, min(threads, 1 + int(weights[-1]) // _A_THREAD)))
    if len(parts) == 1:
        work(*parts[0], *facts)
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, first, last, *facts) for first, last in parts]:
            done.result()


def ranges(weights: Array, parts: int) -> Iterator[tuple[int, int]]:
    """The documents in that many ranges of about equal weight."""
    aims = np.linspace(0, weights[-1], parts + 1)[1:-1]
    borders = [0, *np.searchsorted(weights[1:-1], aims).tolist(), len(weights) - 1]
    return ((first, last) for first, last in pairwise(borders) if first < last)


def chunks(weights: Array, owners: Array | None, most: int) -> Iterator[Array]:
    """Documents in chunks of about `most` by weight. All documents of an owner are in one chunk."""
    lengths = np.diff(weights)
    order = np.arange(len(lengths)) if owners is None or lengths.sum() < most else np.argsort(owners, kind="stable")
    filled = np.cumsum(lengths[order]) // most
    if owners is not None and len(order):
        heads = np.flatnonzero(np.diff(owners[order], prepend=owners[order[0]] - 1))
        filled = np.repeat(filled[heads], np.diff(heads, append=len(order)))
    yield from np.split(order, np.flatnonzero(np.diff(filled)) + 1) if len(order) else ()


def _places(ends: Array, documents: Array) -> Array:
    """The places of these documents' draws, one after the other."""
    lengths = np.diff(ends)[documents]
    shift = np.repeat(ends[documents] - np.cumsum(lengths) + lengths, lengths)
    return shift + np.arange(len(shift))


def with_zero(ends: Array) -> Array:
    """Where each item begins, and where the last one ends, from where each one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.asarray(ends, dtype=np.int64)])
