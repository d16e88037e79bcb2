"""Documents with noise in place of words, in the form that LDA and SentenceLDA read: slots of weights.

It draws no noise of its own: all that it reads was made private before, so whatever it makes of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from securetm.contracts import Array, ClippedSum, Perturbed
from securetm.errors import BrokenPromise
from securetm.models.document_noise import starts_of
from securetm.models.gibbs.alias_tables import tables_of
from securetm.models.gibbs.draws import Assignments, CountTable, ranges
from securetm.models.gibbs.slot_draw_kernels import (
    WHOLE,
    DrawLayout,
    SharedTopics,
    SlotWeights,
    add_up,
    draw_pieces,
    first_topics,
)

_PIECE = 1 << 8  # slots of one document that make all their sweeps before the next ones do
_BLOCK = 1 << 18  # weights that are read at a time: what noise and what topics look up change places in the cache each time
FLOOR = 0.5  # of a topic's mean count: added to eta
_BLOCK_SLOTS = 1 << 15  # slots that are read at a time where they have few weights
_GUESS = 512  # weights in a slot, before any was seen


@dataclass(frozen=True)
class Slots:
    """Documents behind noise. Each draw has one slot (LDA) or a sentence's slots (SentenceLDA), and weighs words by their sum.

    Its target is iFTM's partially collapsed one (Equations 6 and 13): P(z | rest) goes with (topics of the document's other
    draws + alpha) x exp(sum of weight x log phi), where phi, the mean that the shared counts give, is fixed in a round.
    The paper's word proposal knows the word, which is no longer known here. Instead a word of the draw is chosen
    by its weight (up to 1, which is what a slot's own word has), whatever the topic is, and a topic proposed by what it alone
    makes of them; the acceptance ratio has that proposal in it. Each choice of word is a kernel that keeps the target, so
    their mixture does. Eta is raised by half of a topic's mean count: where noise has put its weight on all words, the chances
    of that noise would otherwise set topics apart.
    """

    perturbed: Perturbed
    draw_ends: Array  # where each document's draws begin, and where the last one's end
    slot_ends: Array  # the same for each draw's slots
    _sums: dict[int, tuple[Array, Array]] = field(default_factory=dict, repr=False, compare=False)  # counted while at hand

    @classmethod
    def of(cls, documents: Any, words: int, by_sentence: bool) -> Self:
        """The slots of documents (contracts.Documents) behind noise, over that many words."""
        if len(documents.vocabulary) != words:  # their counts would be drawn only to be measured
            raise BrokenPromise("document", len(documents.vocabulary), words)
        token_ends = _begun(documents.token_ends)
        if not by_sentence:
            return cls(documents.perturbed, token_ends, np.arange(token_ends[-1] + 1))
        sentence_ends = _begun(documents.sentence_ends)
        return cls(documents.perturbed, np.searchsorted(sentence_ends, token_ends), sentence_ends)

    def __len__(self) -> int:
        return len(self.draw_ends) - 1

    def names(self, keys: Array) -> Array:
        """A document's topics are remembered under its key and its number of draws: what it holds plays no part."""
        keys = np.ascontiguousarray(keys, dtype=np.uint64)
        lengths = np.diff(self.draw_ends).astype(np.uint64)
        return starts_of(0, 0, keys, 0) ^ starts_of(0, 0, lengths, 1)

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        """Every draw's topic by Metropolis-Hastings. While nothing is counted they are random: no weight tells topics apart."""
        topics, shared, noise = old.topics.copy(), _shared(table), table.noise(old.names)
        sweeps = sweeps if table.counts.any() else 0

        def work(part: tuple[int, int]) -> Array:
            first_topics(*part, self.draw_ends, noise, old.known(), table.topics, topics)
            return self._draw(*part, shared, noise, sweeps, topics)

        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(work, ranges(self.slot_ends[self.draw_ends], threads)))
        self._sums.clear()
        self._sums[id(topics)] = (topics, sum(found, np.zeros(table.counts.shape, np.int64)))
        return topics

    def counted(self, topics: Array, table: CountTable) -> Array:
        """The sum of the weights of each topic's draws: topics x words."""
        if id(topics) in self._sums:
            return self._sums[id(topics)][1] / WHOLE
        sums = np.zeros(table.counts.shape, np.int64)
        for head, stop, read in self._blocks(0, len(self)):
            add_up(head, stop, self._layout.pieces, self.slot_ends, *read, topics, sums)
        return sums / WHOLE

    def add_rows(self, topics: Array, table: CountTable, clipped_sum: ClippedSum, persons: Array | None) -> None:  # noqa: ARG002
        """Adds one row for the whole party: each slot was bounded before the noise."""
        if len(self):
            row = self.counted(topics, table).reshape(1, -1)
            clipped_sum.add(row.astype(np.int64) if self.perturbed.whole else row, np.zeros(1, np.int64))

    def _draw(self, first: int, last: int, shared: SharedTopics, noise: Array, sweeps: int, topics: Array) -> Array:
        """New topics for a range of documents, and the sums that they make: a block is read once for both."""
        sums = np.zeros(shared.log_phi.shape, np.int64)
        for head, stop, read in self._blocks(first, last):
            draw_pieces(head, stop, *self._layout, *read, *shared, noise, sweeps, topics)
            add_up(head, stop, self._layout.pieces, self.slot_ends, *read, topics, sums)
        return sums

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, SlotWeights]]:
        """The pieces of a range of documents, as many at a time as keep to a block by the weights that the last ones had."""
        slots, room = self.slot_ends[self._layout.pieces], _BLOCK // _GUESS
        head, end = np.searchsorted(self._layout.owners, [first, last])
        while head < end:
            stop = min(max(head + 1, int(np.searchsorted(slots, slots[head] + room, side="right")) - 1), end)
            read = SlotWeights(*self.perturbed.between(int(slots[head]), int(slots[stop])))
            yield head, stop, read
            room = min(max(_BLOCK * int(slots[stop] - slots[head]) // max(len(read.words), 1), 1), _BLOCK_SLOTS)
            head = stop

    @cached_property
    def _layout(self) -> DrawLayout:
        """With the pieces of each document: the draws whose first slots are in the same stretch of `_PIECE` slots."""
        owners = np.repeat(np.arange(len(self)), np.diff(self.draw_ends))
        within = (self.slot_ends[:-1] - self.slot_ends[self.draw_ends[owners]]) // _PIECE
        begun = np.ones(len(owners), dtype=bool)
        begun[1:] = (np.diff(owners) != 0) | (np.diff(within) != 0)
        pieces = np.flatnonzero(begun)
        return DrawLayout(np.append(pieces, len(owners)), owners[pieces], self.draw_ends, self.slot_ends)


def _shared(table: CountTable) -> SharedTopics:
    """Noise puts about as much on any word, and its own chances must not set topics apart: eta is raised by a share of it."""
    smooth = table.counts + table.eta + FLOOR * table.counts.mean(axis=1, keepdims=True)
    phi = smooth / smooth.sum(axis=1, keepdims=True)
    tables, _ = tables_of(np.ascontiguousarray(phi.T))
    alpha, _ = tables_of(table.alpha[None])
    return SharedTopics(np.log(phi), tables, tables.view(np.uint64), table.alpha, alpha, alpha.view(np.uint64))


def less_noise(counts: Array, noise: float) -> Array:
    """A table of topics without what noise is expected to have put there: `noise` a word and slot, a public number of its law.

    How many slots a topic has follows from its total, for each slot brings about 1 of its own and the noise on all other words.
    """
    slots = counts.sum(axis=1, keepdims=True) / (1.0 + noise * (counts.shape[1] - 1))
    without: Array = np.maximum(counts - noise * slots, 0.0)
    return without


def _begun(ends: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.asarray(ends, dtype=np.int64)])
