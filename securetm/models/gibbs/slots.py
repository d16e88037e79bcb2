"""Documents with noise in place of words, in the form that LDA and SentenceLDA read: slots of weights.

It adds no noise. All that it reads was made private before, so its results are post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from securetm.contracts import Array, Perturbed, Rows
from securetm.errors import BrokenPromise
from securetm.models.document_noise import starts_of
from securetm.models.gibbs.alias_tables import tables_of
from securetm.models.gibbs.draws import Assignments, CountTable, SampledDocuments, ranges, with_zero
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
_BLOCK = 1 << 18  # weights that are read at a time: noise and topics take turns in the processor's cache
FLOOR = 0.5  # the share of a topic's mean count that is added to eta
_BLOCK_SLOTS = 1 << 15  # slots that are read at a time where they have few weights
_GUESS = 512  # weights in a slot, before any was seen


@dataclass(frozen=True)
class Slots(SampledDocuments):
    """Documents behind noise. Each draw has one slot (LDA) or a sentence's slots (SentenceLDA), and weighs words by their sum.

    The target is iFTM's partially collapsed one (Equations 6 and 13): P(z | rest) is proportional to (topics of the document's
    other draws + alpha) x exp(sum of weight x log phi). Here phi is the mean that the shared counts give, fixed in a round.
    The paper's word proposal knows the word, which is not known here. Instead a word of the draw is chosen by its weight (up to
    1, the weight of a slot's own word), whatever the topic is. This word alone proposes a topic, and the acceptance ratio
    divides that proposal out. Each choice of word is a kernel that keeps the target, so their mixture keeps it too. Eta is
    raised by half of a topic's mean count: noise puts weight on all words, and would otherwise set topics apart by chance.
    """

    slot_ends: Array  # where each draw's slots begin, and where the last one's end
    perturbed: Perturbed
    _sums: dict[int, tuple[Array, Array]] = field(default_factory=dict, repr=False, compare=False)  # of the last draw's topics

    @classmethod
    def of(cls, documents: Any, words: int, by_sentence: bool) -> Self:
        """The slots of documents (contracts.Documents) behind noise, over that many words."""
        if len(documents.vocabulary) != words:  # to ask for `counts` would draw them
            raise BrokenPromise("document", len(documents.vocabulary), words)
        token_ends = with_zero(documents.token_ends)
        if not by_sentence:
            return cls(token_ends, np.arange(token_ends[-1] + 1), documents.perturbed)
        sentence_ends = with_zero(documents.sentence_ends)
        return cls(np.searchsorted(sentence_ends, token_ends), sentence_ends, documents.perturbed)

    def names(self, keys: Array) -> Array:
        """The name under which each document's topics are remembered, made of its key and its number of draws."""
        keys = np.ascontiguousarray(keys, dtype=np.uint64)
        lengths = np.diff(self.draw_ends).astype(np.uint64)
        return starts_of(0, 0, keys, 0) ^ starts_of(0, 0, lengths, 1)

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        """Every draw's topic by Metropolis-Hastings. While nothing is counted, topics are random."""
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
            add_up(head, stop, self._layout, read, topics, sums)
        return sums / WHOLE

    def chunks(self, persons: Array | None) -> Iterator[Array]:  # noqa: ARG002
        """All documents give one row: each slot was bounded before the noise."""
        return iter([np.zeros(1, np.int64)] if len(self) else [])

    def rows(self, documents: Array, topics: Array, table: CountTable) -> Rows:  # noqa: ARG002
        """The row of the whole party."""
        row = self.counted(topics, table).reshape(1, -1)
        return row.astype(np.int64) if self.perturbed.whole else row

    def _draw(self, first: int, last: int, shared: SharedTopics, noise: Array, sweeps: int, topics: Array) -> Array:
        """Draws topics for a range of documents and returns the sums of their weights. Each block is read once for both."""
        sums = np.zeros(shared.log_phi.shape, np.int64)
        for head, stop, read in self._blocks(first, last):
            draw_pieces(head, stop, self._layout, read, shared, noise, sweeps, topics)
            add_up(head, stop, self._layout, read, topics, sums)
        return sums

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, SlotWeights]]:
        """The pieces of a range of documents, by blocks. The last block's weights say how many slots fill the next one."""
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
        """The layout of all draws. A piece: the draws of a document whose first slots lie in one stretch of `_PIECE` slots."""
        owners = np.repeat(np.arange(len(self)), np.diff(self.draw_ends))
        within = (self.slot_ends[:-1] - self.slot_ends[self.draw_ends[owners]]) // _PIECE
        begun = np.ones(len(owners), dtype=bool)
        begun[1:] = (np.diff(owners) != 0) | (np.diff(within) != 0)
        pieces = np.flatnonzero(begun)
        return DrawLayout(np.append(pieces, len(owners)), owners[pieces], self.draw_ends, self.slot_ends)


def _shared(table: CountTable) -> SharedTopics:
    """The weights of a round. Noise puts about the same on every word, so eta is raised by a share of a topic's mean count."""
    smooth = table.counts + table.eta + FLOOR * table.counts.mean(axis=1, keepdims=True)
    phi = smooth / smooth.sum(axis=1, keepdims=True)
    tables, _ = tables_of(np.ascontiguousarray(phi.T))
    alpha, _ = tables_of(table.alpha[None])
    return SharedTopics(np.log(phi), tables, tables.view(np.uint64), table.alpha, alpha, alpha.view(np.uint64))


def less_noise(counts: Array, noise: float) -> Array:
    """A table of topics less its expected noise. `noise` is the mean noise per word and slot, which its distribution says.

    The number of a topic's slots follows from its total: each slot adds about 1 for its own word, and noise for all others.
    """
    slots = counts.sum(axis=1, keepdims=True) / (1.0 + noise * (counts.shape[1] - 1))
    without: Array = np.maximum(counts - noise * slots, 0.0)
    return without
