"""Documents with noise in place of words, in the form that LDA and SentenceLDA read: slots of weights.

All that is read here was made private before, so its results are post-processing. Topics are drawn by Metropolis-Hastings, as a
function of the weights, the shared topics and public noise. Inner functions take whole arrays and never slices: counting the
references of a slice would take as long as a draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array, Perturbed, Rows
from securetm.data_classes import dataclass, field
from securetm.errors import BrokenPromise
from securetm.models.batches import ranges, with_zero
from securetm.models.document_noise import starts_of, uniform
from securetm.models.lda.counting import Assignments, CountTable, SampledDocuments
from securetm.models.lda.samplers import OTHER, tables_of

MOST_WORDS = 8  # proposals by words that one draw gets, however many slots it has
WHOLE = 1 << 32  # a weight of one in the sums: in fixed point it does not matter in which order they are added
_TRIES = 16  # to choose a word by its weight; then any word is taken
_DOCUMENT, _WORD = 3, _TRIES + 2  # random numbers that a proposal by the document takes at most, and one by a word
_MOST = 700.0  # the exponential of this is finite


class DrawLayout(NamedTuple):
    """The places of pieces, draws and slots: where each one begins, and where the last one ends."""

    pieces: Array  # among the draws
    owners: Array  # the document of each piece
    draw_ends: Array  # of each document among the draws
    slot_ends: Array  # of each draw among the slots


class SlotWeights(NamedTuple):
    """The weights of some consecutive slots, as the parts of a CSR matrix."""

    ends: Array
    words: Array
    weights: Array


class SharedTopics(NamedTuple):
    """The weights of every draw of a round."""

    log_phi: Array  # topics x words
    tables: Array  # each word's phi as an alias table
    bits: Array  # the same memory as whole numbers
    alpha: Array
    alpha_table: Array  # one row
    alpha_bits: Array


@njit(cache=True, nogil=True)
def first_topics(first: int, last: int, draw_ends: Array, noise: Array, known: Array, k: int, topics: Array) -> None:
    """Random topics for the documents that have none, whatever they hold."""
    for d in range(first, last):
        if not known[d]:
            begin = draw_ends[d]
            for t in range(begin, draw_ends[d + 1]):
                topics[t] = min(int(uniform(noise[d], t - begin) * k), k - 1)


@njit(cache=True, nogil=True)
def draw_pieces(  # noqa: C901 - in one function: parted in four it took a fifth longer
    first: int, last: int, layout: DrawLayout, read: SlotWeights, shared: SharedTopics, noise: Array, sweeps: int, topics: Array
) -> None:
    """Sweeps over pieces `first` to `last`, whose slots are those that were read.

    A draw's target is (topics of the document's other draws + alpha) x exp(sum of weight x log phi). All proposals are made
    before the first is judged, because none depends on the current topic: one by the document's other draws and alpha, then
    some by single words of the draw. So the weights of each proposed topic are summed once.
    """
    pieces, owners, draw_ends, slot_ends = layout
    ends, words, weights = read
    log_phi, tables, bits, alpha, alpha_table, alpha_bits = shared
    most, origin = MOST_WORDS + 2, slot_ends[pieces[first]]
    here, place = np.zeros(len(alpha)), np.full(len(alpha), -1)  # the document's other draws by topic; where a topic is tried
    asked, by, tried, sums = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    concentration = alpha.sum()
    for piece in range(first, last):
        d = owners[piece]
        begin, end, start = draw_ends[d], draw_ends[d + 1], noise[d]
        others, slots, before = end - begin - 1, slot_ends[end] - slot_ends[begin], slot_ends[begin]
        for t in range(begin, end):
            here[topics[t]] += 1.0
        for sweep in range(sweeps):
            for t in range(pieces[piece], pieces[piece + 1]):
                length = slot_ends[t + 1] - slot_ends[t]
                b, e = ends[slot_ends[t] - origin], ends[slot_ends[t + 1] - origin]
                at = _DOCUMENT * ((sweep + 1) * (others + 1) + t - begin) + _WORD * (sweep * slots + slot_ends[t] - before)
                z = np.int64(topics[t])
                here[z] -= 1.0

                height = uniform(start, at) * (others + concentration)
                if height < others:
                    asked[1] = _of_another(topics, begin, others, t, height)
                else:
                    asked[1] = _from_table(alpha_table, alpha_bits, 0, uniform(start, at + 1))
                proposals = 2
                if e > b:
                    for n in range(min(length, MOST_WORDS)):
                        index = at + _DOCUMENT + _WORD * n
                        word = words[_by_weight(b, e, weights, start, index + 2)]
                        by[proposals] = word
                        asked[proposals] = _from_table(tables, bits, word, uniform(start, index))
                        proposals += 1

                asked[0], many = z, 0
                for n in range(proposals):
                    if place[asked[n]] < 0:
                        place[asked[n]] = many
                        tried[many] = asked[n]
                        many += 1
                weighed = 0 if many > 1 else many
                while many - weighed > 2:
                    x, y, v = tried[weighed], tried[weighed + 1], tried[weighed + 2]
                    sums[weighed], sums[weighed + 1], sums[weighed + 2] = _three(b, e, words, weights, log_phi, x, y, v)
                    weighed += 3
                if weighed < many:
                    x, y = tried[weighed], tried[many - 1]
                    sums[weighed], sums[many - 1], _ = _three(b, e, words, weights, log_phi, x, y, y)

                for n in range(1, proposals):
                    y = asked[n]
                    if y != z:
                        log_ratio, scale, index = sums[place[y]] - sums[place[z]], 1.0, at + 2
                        if n > 1:  # the document's part is in the target, and the word's proposal is divided out
                            log_ratio += log_phi[z, by[n]] - log_phi[y, by[n]]
                            scale = (here[y] + alpha[y]) / (here[z] + alpha[z])
                            index = at + _DOCUMENT + _WORD * (n - 2) + 1
                        if uniform(start, index) < math.exp(min(log_ratio, _MOST)) * scale:
                            z = y
                for n in range(many):
                    place[tried[n]] = -1
                topics[t] = z
                here[z] += 1.0
        for t in range(begin, end):
            here[topics[t]] = 0.0


@njit(cache=True, nogil=True)
def _of_another(topics: Array, begin: int, others: int, t: int, height: float) -> int:
    """The topic of another draw of the document, each with the same probability."""
    other = begin + min(int(height), others - 1)
    return int(topics[other + 1 if other >= t else other])


@njit(cache=True, nogil=True)
def _from_table(tables: Array, bits: Array, row: int, chance: float) -> int:
    """`alias_tables.draw` from one row of many tables."""
    at = chance * tables.shape[1]
    cell = min(int(at), tables.shape[1] - 1)
    if at - cell < tables[row, cell]:
        return int(cell)
    return int(bits[row, cell] & OTHER)


@njit(cache=True, nogil=True)
def _by_weight(b: int, e: int, weights: Array, start: np.uint64, index: int) -> int:
    """An entry drawn by its weight up to 1: a random entry is accepted with that probability, else another one is tried."""
    i = b
    for n in range(_TRIES):
        at = uniform(start, index + n) * (e - b)
        i = b + min(int(at), e - b - 1)
        if at - int(at) < weights[i]:
            break
    return i


Three = tuple[float, float, float]


@njit(cache=True, nogil=True, inline="always")
def _plus(sums: Three, i: int, words: Array, weights: Array, log_phi: Array, x: int, y: int, z: int) -> Three:
    w, v = np.uint32(words[i]), weights[i]
    return sums[0] + v * log_phi[x, w], sums[1] + v * log_phi[y, w], sums[2] + v * log_phi[z, w]


@njit(cache=True, nogil=True)
def _three(begin: int, e: int, words: Array, weights: Array, log_phi: Array, x: int, y: int, z: int) -> Three:
    """Three topics' sums of weight x log phi in one pass, because reading the entries is half the work.

    Each sum has four lanes, since one long chain of additions is slow. The order is fixed, so that every machine draws alike.
    """
    a = b = c = d = (0.0, 0.0, 0.0)
    whole = begin + (e - begin) // 4 * 4
    for i in range(begin, whole, 4):
        a = _plus(a, i, words, weights, log_phi, x, y, z)
        b = _plus(b, i + 1, words, weights, log_phi, x, y, z)
        c = _plus(c, i + 2, words, weights, log_phi, x, y, z)
        d = _plus(d, i + 3, words, weights, log_phi, x, y, z)
    for i in range(whole, e):
        a = _plus(a, i, words, weights, log_phi, x, y, z)
    return (a[0] + b[0]) + (c[0] + d[0]), (a[1] + b[1]) + (c[1] + d[1]), (a[2] + b[2]) + (c[2] + d[2])


@njit(cache=True, nogil=True)
def add_up(first: int, last: int, layout: DrawLayout, read: SlotWeights, topics: Array, sums: Array) -> None:
    """Adds the weights of pieces `first` to `last`, whose slots are those that were read, to the sums of their topics."""
    pieces, slot_ends, (ends, words, weights) = layout.pieces, layout.slot_ends, read
    origin = slot_ends[pieces[first]]
    for t in range(pieces[first], pieces[last]):
        z = topics[t]
        for i in range(ends[slot_ends[t] - origin], ends[slot_ends[t + 1] - origin]):
            sums[z, np.uint32(words[i])] += np.int64(weights[i] * WHOLE)


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
    def from_documents(cls, documents: Any, words: int, slot_ends: Array | None = None) -> Self:
        """The slots of documents behind noise, over that many words; without `slot_ends` each of them is a draw."""
        if len(documents.vocabulary) != words:  # to ask for `counts` would draw them
            raise BrokenPromise("document", len(documents.vocabulary), words)
        token_ends = with_zero(documents.token_ends)
        ends = np.arange(token_ends[-1] + 1) if slot_ends is None else slot_ends
        return cls(np.searchsorted(ends, token_ends), ends, documents.perturbed)

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
            sums = np.zeros(shared.log_phi.shape, np.int64)
            for head, stop, read in self._blocks(*part):  # each is read once for topics and for the sums of their weights
                draw_pieces(head, stop, self._layout, read, shared, noise, sweeps, topics)
                add_up(head, stop, self._layout, read, topics, sums)
            return sums

        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(work, ranges(self.slot_ends[self.draw_ends], threads)))
        self._sums.clear()
        self._sums[id(topics)] = (topics, sum(found, np.zeros(table.counts.shape, np.int64)))
        return topics

    def counted(self, topics: Array, table: CountTable) -> Array:
        if id(topics) in self._sums:
            return self._sums[id(topics)][1] / WHOLE
        sums = np.zeros(table.counts.shape, np.int64)
        for head, stop, read in self._blocks(0, len(self)):
            add_up(head, stop, self._layout, read, topics, sums)
        return sums / WHOLE

    def chunks(self, persons: Array | None) -> Iterator[Array]:
        """All documents give one row: each slot was bounded before the noise."""
        return iter([np.zeros(1, np.int64)] if len(self) else [])

    def rows(self, documents: Array, topics: Array, table: CountTable) -> Rows:
        row = self.counted(topics, table).reshape(1, -1)
        return row.astype(np.int64) if self.perturbed.whole else row

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
