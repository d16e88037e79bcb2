"""The draws of a model: a token of LDA, or a sentence of SentenceLDA, has one topic. It draws no random number.

All of it stays with whoever holds the documents; what leaves is a sum over documents, added by `CountsQuery`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol, Self

import numpy as np

from securetm.contracts import Array, ClippedSum, Memory
from securetm.models.document_noise import starts_of

NEVER = -2  # the step of a document that no state can have counted
MOST_TOPICS = 1 << 16  # a draw's topic is kept in two bytes
_MINE = "draws/"  # in the party's memory, beside what others keep there
_DRAWS = 0  # the stream of a document's noise


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
        """The number of them."""
        return int(self.counts.shape[0])

    @property
    def words(self) -> int:
        """The number of them."""
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
        """Where each document's stream of public noise begins. By name: two documents with one key must not draw alike."""
        return starts_of(self.seed, self.step, names, _DRAWS)


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
        memory[_MINE + "draw_ends"] = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        memory[_MINE + "topics"] = np.concatenate([fresh.topics, self.topics[_places(self.draw_ends, others)]])


class SampledDocuments(Protocol):
    """A party's documents in the form that one model draws topics from."""

    @property
    def draw_ends(self) -> Array:
        """Where each document's draws begin, and where the last one's end."""
        ...

    def __len__(self) -> int: ...
    def names(self, keys: Array) -> Array:
        """The name under which each document's topics are remembered."""
        ...

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        """The topic of every draw after so many sweeps. A document's depend on no other document."""
        ...

    def counted(self, topics: Array, table: CountTable) -> Array:
        """How often each word has each topic in all these documents together: topics x words."""
        ...

    def add_rows(self, topics: Array, table: CountTable, clipped_sum: ClippedSum, persons: Array | None) -> None:
        """Adds the same counts to a clipped sum, one row per document."""
        ...


def on_ranges(weights: Array, threads: int, work: Callable[[int, int], None]) -> None:
    """Documents are shared out among threads in ranges of about equal weight; no document's result depends on it.

    `weights` are running sums: where each document begins and where the last one ends.
    """
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, first, last) for first, last in ranges(weights, threads)]:
            done.result()


def ranges(weights: Array, parts: int) -> Iterator[tuple[int, int]]:
    """The documents in that many ranges of about equal weight."""
    aims = np.linspace(0, weights[-1], parts + 1)[1:-1]
    borders = [0, *np.searchsorted(weights[1:-1], aims).tolist(), len(weights) - 1]
    return ((first, last) for first, last in pairwise(borders) if first < last)


def chunks(weights: Array, owners: Array | None, most: int) -> Iterator[Array]:
    """Documents a chunk of about `most` at a time by weight; an owner's documents are all in one, and come back in none."""
    lengths = np.diff(weights)
    order = np.arange(len(lengths)) if owners is None or lengths.sum() < most else np.argsort(owners, kind="stable")
    filled = np.cumsum(lengths[order]) // most
    if owners is not None and len(order):
        heads = np.flatnonzero(np.diff(owners[order], prepend=owners[order[0]] - 1))
        filled = np.repeat(filled[heads], np.diff(heads, append=len(order)))
    yield from np.split(order, np.flatnonzero(np.diff(filled)) + 1) if len(order) else ()


def _places(ends: Array, documents: Array) -> Array:
    """Where the draws of these documents stand, one after the other."""
    lengths = np.diff(ends)[documents]
    shift = np.repeat(ends[documents] - np.cumsum(lengths) + lengths, lengths)
    return shift + np.arange(len(shift))
