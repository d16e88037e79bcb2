"""Laplace noise on one-word counts, thresholded, drawn only where something is left of it. It spends no privacy by itself.

A slot holds one word, so its counts are a single 1 among zeros. Noise of scale 1 / epsilon on every count, and then zeros for
all that is not above the threshold: few counts are left, and only these are drawn. They are a function of a secret and of the
slot's number alone, so they need not be stored.

The kernels come first: a keystream, ladders of chances, and each slot's weights one after the other. They make no randomness,
and do not run in constant time: no claim holds against an adversary that times single slots. What runs for every slot is
inlined, because counting references to the arrays it gets takes longer than drawing a few weights.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.compiled import njit
from securetm.contracts import Array
from securetm.data_classes import dataclass
from securetm.mechanisms.noise_laws import exponential

FIRST_BITS = 16  # of a draw; most are decided by them, nearly all others by 64 bits more
QUICK_BITS = 13  # of these, which decide most draws: a table of so many places stays in the first cache
MORE_WORDS = 4  # of 64 bits that a bound has besides, compared as far as it takes
EVEN_BITS = 7  # in all but 2^-7 of cases a step's last bits are even chances, which need no ladder
UNEVEN = (1 << EVEN_BITS) - 1
LAWS = 4
LAW: tuple[Any, ...] = tuple(np.int64(law) for law in range(LAWS))  # a plain 0 is a type of its own to the compiler
GAPS, HIGH, LOW, SIGNS = LAW
PAGE = (1 << FIRST_BITS) + 1
DONE, FULL, SHORT = 0, 1, 2  # why `fill` came back: all slots are done, no room for one more, its stream was too short
REST, HALF, LAST = np.uint16(FIRST_BITS - QUICK_BITS), 2 * FIRST_BITS - QUICK_BITS, (1 << FIRST_BITS) - 1
ONE, TWO, THREE, WORD = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)  # places in a stream of 16 bits each
MOST_OF_A_STEP = 3 * (1 + 4 * MORE_WORDS) + 1  # places of the rest that one coordinate takes at most


class BoundTables(NamedTuple):
    """Laws on 0, 1, 2, ... as bounds of 272 bits: the outcome is how many of a law's bounds are not above the draw.

    Gaps between counts that are left; how far these are above the least, first and last bits; whether noise is not negative.
    """

    sure: Array  # int16, laws x 2^16: by a draw's first 16 bits the outcome, or -1 where they do not decide
    book: Array  # uint64: for each law and first bits where their bounds begin in it; then all bounds' next words, word by word


@njit(cache=True, nogil=True)
def _word(stream: Array, cursor: Any) -> Any:
    word = np.uint64(0)
    for i in range(4):
        word = (word << np.uint64(16)) | np.uint64(stream[cursor + np.uint64(i)])
    return word


@njit(cache=True, nogil=True)
def _drawn(law: int, first: Any, book: Array, rest: Array, cursor: Any) -> Any:
    """The draw that has these first bits, and where the rest goes on. Of bounds that agree so far, each word leaves fewer."""
    here = law * PAGE + np.int64(first)
    place, last = np.int64(book[here]), np.int64(book[here + 1])
    further, more = np.int64(0), (len(book) - LAWS * PAGE) // MORE_WORDS
    while place < last and further < MORE_WORDS:
        word = _word(rest, cursor)
        cursor += WORD
        while place < last and book[place + further * more] < word:
            place += 1
        stop = place
        while stop < last and book[stop + further * more] == word:
            stop += 1
        last, further = stop, further + 1
    if further == MORE_WORDS:  # all words agree, and a bound is not above a draw that equals it
        place = last
    return place - np.int64(book[law * PAGE]), cursor


@njit(cache=True, nogil=True, inline="always")
def _far(first: Any, last: Any, low_bits: int, sure: Array, book: Array, rest: Array, cursor: Any) -> Any:
    """How many steps above the least these first and last bits put the noise, and where the rest goes on."""
    far = np.int64(sure[HIGH, first])
    if far < 0:
        far, cursor = _drawn(HIGH, first, book, rest, cursor)
    if low_bits == 0:
        return far, cursor
    if last & UNEVEN != UNEVEN:
        return (far << low_bits) + np.int64(last >> EVEN_BITS), cursor
    low, cursor = np.int64(sure[LOW, rest[cursor]]), cursor + ONE
    if low < 0:
        low, cursor = _drawn(LOW, rest[cursor - ONE], book, rest, cursor)
    return (far << low_bits) + low, cursor


@njit(cache=True, nogil=True, inline="always")
def _own(one: int, low_bits: int, sure: Array, book: Array, rest: Array, cursor: Any) -> Any:
    """A count of 1 with its noise, in steps, and where the rest goes on."""
    sign, first, last = rest[cursor], rest[cursor + ONE], rest[cursor + TWO]
    positive, cursor = np.int64(sure[SIGNS, sign]), cursor + THREE
    if positive < 0:
        positive, cursor = _drawn(SIGNS, sign, book, rest, cursor)
    far, cursor = _far(first, last, low_bits, sure, book, rest, cursor)
    return (one + far if positive else one - 1 - far), cursor


@njit(cache=True, nogil=True, inline="always")
def _placed(
    own: Any, reach: Any, stream: Array, part: Any, tables: Any, rest: Array, left: Any, ids: Array, start: Any
) -> tuple[Any, Any, Any, Any]:
    """Writes the words with a count, from one gap to the next, and the slot's own word among them where it is kept.

    Returns where they end, the own word's place, whether a gap led to it too, and where the rest goes on: beyond its end if a
    stream is too short.
    """
    (word, kept), (size, limit), (begin, end), (quick, sure, book), (cursor, stop) = own, reach, part, tables, left
    at, here, place, own, met = start, np.int64(-1), np.int64(size if word < 0 else word), start, np.int64(0)
    for i in range(begin, end):
        gap = np.int64(quick[stream[i] >> REST])
        if gap < 0:
            gap = np.int64(sure[GAPS, stream[i]])
        if gap < 0:
            if cursor > stop:
                break
            gap, cursor = _drawn(GAPS, stream[i], book, rest, cursor)
            if gap == limit:
                here += limit
                continue
        here += gap + 1
        if here >= place:  # the end of the slot too: beyond it there is nothing
            if place < size:
                own, met, place = at, np.int64(here == word), np.int64(size)
                ids[at] = word
                at += kept
                if met:
                    continue
            if here >= size:
                return at, own, met, cursor
        ids[at] = here
        at += ONE
    return at, own, met, stop + ONE


@njit(cache=True, nogil=True, inline="always")
def _weighed(
    n: Any, scale: Any, stream: Array, begin: Any, tables: Any, rest: Array, left: Any, place: Any, again: Array, weights: Array
) -> Any:
    """Writes the weights of n counts from `at` on; those from number `upto` on are shifted by `shift` places.

    Returns where the rest goes on, beyond its end if it is too short. Counts that few bits do not decide are drawn afterwards.
    """
    (low_bits, least, most, grid), (quick, sure, book), (cursor, stop), (at, upto, shift) = scale, tables, left, place
    bits, never = (EVEN_BITS, UNEVEN) if low_bits else (FIRST_BITS, 1 << FIRST_BITS)
    undecided: Any = np.uint64(0)
    for i in range(n):
        word = np.int64(stream[begin + i])
        high, last = np.int64(quick[np.uint64(word >> HALF)]), word & LAST
        far = np.int32((high << low_bits) + (last >> bits))
        weights[at + i + (shift if i >= upto else np.uint64(0))] = np.float64(min(np.int32(least) + far, np.int32(most))) * grid
        again[undecided] = i
        undecided += np.uint64((high < 0) | (last & UNEVEN == never))
    for j in range(undecided):
        if cursor > stop:
            return cursor
        drawn = np.uint64(again[j])
        word = np.int64(stream[begin + drawn])
        first, last = np.uint64(word >> FIRST_BITS), word & LAST
        high = np.int64(sure[HIGH, first])
        if high < 0:
            high, cursor = _drawn(HIGH, first, book, rest, cursor)
        low = last >> bits
        if last & UNEVEN == never:
            low = np.int64(sure[LOW, rest[cursor]])
            cursor += ONE
            if low < 0:
                low, cursor = _drawn(LOW, rest[cursor - ONE], book, rest, cursor)
        far = np.int32((high << low_bits) + low)
        if (
            shift <= ONE or drawn + ONE != upto
        ):  # a word that is not kept gives its noise's place to the next one, written before
            weights[at + drawn + (shift if drawn >= upto else np.uint64(0))] = (
                np.float64(min(np.int32(least) + far, np.int32(most))) * grid
            )
    return cursor


@njit(cache=True, nogil=True)
def fill(streams: Any, words: Array, law: Any, out: Any) -> tuple[Any, Any, Any]:
    """Computes the non-zero weights of the slots that hold these words, from each slot's part of the streams.

    The words of a slot's weights rise. A negative word is none. The slot's own word is weighed first, and every other
    coordinate draws the same whatever that word is. A gap of `limit` says only that there is nothing so far. Returns how many
    slots were done, how many weights there are now, and why it came back. A slot that read beyond its own part of the rest is
    undone; the last slot needs MOST_OF_A_STEP readable places there. Two loops do what few bits decide, which is most of it;
    unsigned places save a test of their sign.
    """
    gaps, steps, rest, stride, rooms = streams
    size, one, least, most, limit, low_bits, grid, quick_gaps, quick_high, sure, book = law
    ends, ids, weights, start = out
    at, again = np.uint64(start), np.empty(rooms[1] + 1, np.int32)
    for slot in range(len(words)):
        if len(ids) - np.int64(at) <= size:  # one place more, where a word is written that may not stay
            return slot, np.int64(at), FULL
        cursor, word = np.uint64(slot * (stride // 2)), np.int64(words[slot])
        stop = cursor + np.uint64(rooms[2])
        own, after = _own(one, low_bits, sure, book, rest, cursor)
        kept = np.uint64(word >= 0 and own >= least)
        first = np.uint64(slot * (stride // 2))
        upto = first + np.uint64(rooms[0])
        tables = (quick_gaps, sure, book)
        end, place, met, after = _placed((word, kept), (size, limit), gaps, (first, upto), tables, rest, (after, stop), ids, at)
        drawn = end - at - kept + np.uint64(met)
        if after > stop or drawn > np.uint64(rooms[1]):
            return slot, np.int64(at), SHORT
        first, upto, shift = np.uint64(slot * (stride // 4)), place - at + np.uint64(met), kept - np.uint64(met)
        scale, tables = (low_bits, least, most, grid), (quick_high, sure, book)
        after = _weighed(drawn, scale, steps, first, tables, rest, (after, stop), (at, upto, shift), again, weights)
        if after > stop:
            return slot, np.int64(at), SHORT
        if kept:  # where both were drawn, in the place of the noise that would be there without the word
            weights[place] = min(own, most) * grid
        at = end
        ends[slot + 1] = np.int64(at)
    return len(words), np.int64(at), DONE


@njit(cache=True, nogil=True)
def shuffle(words: Array, ends: Array, stream: Array) -> bool:
    """Shuffles each document's words in place (Fisher and Yates). Returns False if the stream was too short."""
    cursor, first = 0, 0
    for document in range(len(ends)):
        for left in range(ends[document] - first, 1, -1):
            most = np.uint64(left)
            rest = (np.uint64(0) - most) % most  # 2^64 modulo `left`: words below it would favour some places
            while True:
                if cursor == len(stream):
                    return False
                word = stream[cursor]
                cursor += 1
                if word >= rest:
                    break
            one, other = first + left - 1, first + np.int64(word % most)
            words[one], words[other] = words[other], words[one]
        first = ends[document]
    return True


SECRET = 32  # bytes
FINENESS = 15  # a continuous law's grid has between 2^15 and 2^16 steps to the scale
LOW_BITS = FIRST_BITS - EVEN_BITS  # of a continuous step, drawn apart
LEAST_EPSILON, MOST_EPSILON = 2.0**-10, 100.0
MOST_CUT = 100.0  # times epsilon, of the least count above the threshold: its chance is above 2^-146
MOST_WORDS = 1 << 22
MARGIN = Fraction(1, 1 << 20)  # of epsilon: so much more noise than it needs pays for all rounding
BOUND_BITS = FIRST_BITS + 64 * MORE_WORDS
REACH_BITS = 190  # noise is drawn as far as it lies beyond with a chance of 2^-190
GAP_BITS = 40  # a gap is drawn as far as there is nothing so long with a chance of 2^-40, and then the next one from there
_BITS = 400
_UNIT = 1 << _BITS
_DIGITS = 150
_PIECE = 1 << 18  # bytes of keystream at once: they stay in the processor's cache
_PART, _PAIR = 2, 4  # bytes of a place in the streams of gaps and of the rest, and in that of steps
_BLOCK = 16  # bytes that a counter of the cipher stands for
_BEYOND = _PART * MOST_OF_A_STEP  # bytes behind the last stretch that are looked at, and thrown away
# Where in the cipher's counter each use begins. A slot's own stretch is sized for nearly all slots; the rest go on further up.
SLOTS, ORDER, FURTHER = 0, 1 << 126, 1 << 127
_FURTHER_BITS = 40


_ZEROS = memoryview(bytes(_PIECE))


class _Scratch(threading.local):
    """Memory of a thread, which writes each keystream over the one before: fresh memory takes as long as the cipher."""

    def __init__(self) -> None:
        self.piece = bytearray(_PIECE + _BEYOND + _BLOCK)


_SCRATCH = _Scratch()


def shuffled(secret: bytes, words: Array, ends: Array) -> Array:
    """Each document's words in an order that the secret gives, all orders being equally likely."""
    order, more = np.array(words, dtype=np.int32), 8 * (len(words) + 64)
    while not shuffle(order, ends, np.frombuffer(keystream(secret, ORDER, more), dtype="<u8")):
        order, more = np.array(words, dtype=np.int32), 2 * more
    return order


def _nearly_all(mean: float) -> float:
    """A number that a rare count with this mean seldom exceeds."""
    return mean + 4 * math.sqrt(mean) + 2


def keystream(secret: bytes, counter: int, n: int) -> bytes:
    """n bytes of AES-256-CTR under this secret, from this counter on."""
    cipher = Cipher(algorithms.AES256(secret), modes.CTR(counter.to_bytes(_BLOCK))).encryptor()
    return cipher.update(bytes(n))


@dataclass(frozen=True)
class SlotNoise:
    """The law of one slot's counts over `size` words.

    Whole: P(Y = k) is proportional to exp(-epsilon |k|). Otherwise the same law on a grid so fine that it cannot be told from
    the continuous one: floating-point noise would give away the count below it by its last bits (Mironov 2012), numbers on one
    grid do not. A count of 1 is a whole number of steps, so the likelihood of any outcome changes by a factor of at most
    e^epsilon between 0 and 1, in one law as in the other.

    That holds for what is really drawn, with nothing left over. All chances it is made of are above 2^-200 and rounded by less
    than 2^-270, so each is right to a share of 2^-70. Noise that reaches further than it is drawn is cut at one place, whether
    a word is there or not. With and without its word, a slot's likelihood is made of equal factors but for the word's own noise
    and the gaps that follow it up to the next count: fewer than 2^22, wrong together by a share below 2^-47. The law is one
    for an epsilon less by 2^-20 of itself, and epsilon is 2^-10 at least, so there is room for 2^-30.
    """

    size: int
    epsilon: float
    threshold: float
    whole: bool

    @property
    def steps(self) -> int:
        """Steps of the grid in a count of 1."""
        return 1 if self.whole else 1 << max(0, FINENESS + math.ceil(math.log2(self.epsilon)))

    @property
    def rate(self) -> Fraction:
        """By how much the log-likelihood falls with each step."""
        return Fraction(self.epsilon) * (1 - MARGIN) / self.steps

    @property
    def least(self) -> int:
        """The smallest number of steps above the threshold."""
        return math.floor(Fraction(self.threshold) * self.steps) + 1

    @cached_property
    def chance(self) -> float:
        """The probability that noise alone lifts one count over the threshold."""
        return _above(-self.rate, self.least) / _UNIT

    @property
    def expected(self) -> float:
        """The mean number of counts of a slot that noise alone lifts over the threshold."""
        return self.size * self.chance

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on one count, before the threshold."""
        half = float(self.rate) / 2
        return math.sqrt(0.5) / math.sinh(half) / self.steps if half < 700 else 0.0

    @property
    def cut(self) -> float:
        """The negative logarithm, nearly, of the probability that noise reaches the least count above the threshold."""
        return float(self.rate * self.least)

    @property
    def most(self) -> int:
        """The number of steps at which a count is cut: noise is drawn this far, on a count of 1 as on a count of 0."""
        return min(self.steps, self.least) + (self.bounds(HIGH) << self._low_bits)

    def bounds(self, law: int) -> int:
        """The number of bounds in the table of one of the laws."""
        return int(self.ladders.book[(law + 1) * PAGE - 1]) - int(self.ladders.book[law * PAGE])

    @cached_property
    def ladders(self) -> BoundTables:
        """The laws that are drawn from, as tables of bounds."""
        return _ladders(self.size, self.rate, self._low_bits, self.least)

    @cached_property
    def stretch(self) -> tuple[int, int, int]:
        """Bytes of keystream of one slot for gaps, for steps, and for the rest. Nearly all slots need no more."""
        places = math.ceil(min(_nearly_all(self.expected) + 1, self.size + 1) / 2) * 2
        unsure = sum(float(np.mean(self.ladders.sure[law] < 0)) for law in (GAPS, HIGH))
        unsure += 1 / (1 << EVEN_BITS) if self._low_bits else 0
        gaps, steps, rest = _PART * places, _PAIR * places, _PART * (3 + 5 * _nearly_all(unsure * (self.expected + 1)))
        return gaps, steps, math.ceil((gaps + steps + rest) / _BLOCK) * _BLOCK - gaps - steps

    @property
    def stride(self) -> int:
        """Bytes of keystream of one slot."""
        return sum(self.stretch)

    @cached_property
    def facts(self) -> Any:
        """The law's numbers and tables, as the kernel takes them."""
        gaps = self.bounds(GAPS)  # as many as there are words, unless gaps are drawn in parts
        reaches = (self.least, self.most, gaps if gaps < self.size else -1)
        quick = (_quick(self.ladders.sure[GAPS]), _quick(self.ladders.sure[HIGH]))
        return (self.size, self.steps, *reaches, self._low_bits, 1 / self.steps, *quick, *self.ladders)

    def draw(self, secret: bytes, words: Array, first: int) -> tuple[Array, Array, Array]:
        """Run by a party: the slots `first`, `first` + 1, ..., which hold these words (a negative one: none).

        Where each slot's weights begin and the last one's end (int64), their words (int32, rising in each slot), the weights.
        """
        drawing = _Drawing(self, secret, np.ascontiguousarray(words, dtype=np.int32), first)
        for begin, stream in self._streams(secret, len(words), first):
            drawing.run(begin, stream)
        return drawing.ends, drawing.ids[: drawing.at], drawing.weights[: drawing.at]

    def _streams(self, secret: bytes, slots: int, first: int) -> Iterator[tuple[int, Array]]:
        """The keystream of all these slots, piece by piece. Each piece overwrites the one before."""
        stride = self.stride
        at_once = min(max(1, _PIECE // stride), slots)
        zeros, piece = _ZEROS, _SCRATCH.piece
        if at_once * stride > _PIECE:
            zeros, piece = memoryview(bytes(stride)), bytearray(stride + _BEYOND + _BLOCK)
        counter = SLOTS + first * (stride // _BLOCK)
        cipher = Cipher(algorithms.AES256(secret), modes.CTR(counter.to_bytes(_BLOCK))).encryptor()
        for begin in range(0, slots, max(at_once, 1)):
            n = min(at_once, slots - begin) * stride
            cipher.update_into(zeros[:n], piece)
            yield begin, np.frombuffer(piece, dtype=np.uint8, count=n + _BEYOND)

    @property
    def _low_bits(self) -> int:
        return 0 if self.steps == 1 else LOW_BITS


class _Drawing:
    """One call of `draw`: the weights found so far, in arrays that grow."""

    def __init__(self, law: SlotNoise, secret: bytes, words: Array, first: int) -> None:
        self._law, self._secret, self._words, self._first = law, secret, words, first
        most = (law.expected + 1) * len(words)
        room = int(most + 6 * math.sqrt(most)) + 2 * law.size
        self.ends = np.zeros(len(words) + 1, dtype=np.int64)
        self.ids, self.weights, self.at = np.empty(room, dtype=np.int32), np.empty(room), 0

    def run(self, begin: int, stream: Array) -> None:
        """The slots whose stretches of keystream these are, from number `begin` of the call on."""
        stride, room = self._law.stride, self._law.stretch
        gaps, steps, _ = room
        end = begin + (len(stream) - _BEYOND) // stride
        while begin < end:
            stream = stream[len(stream) - _BEYOND - (end - begin) * stride :]
            done, why = self._fill(begin, end, (stream, stream[gaps:], stream[gaps + steps :]), room)
            begin += done
            if why == FULL:
                self._grow()
            elif why == SHORT:
                self._alone(begin, np.split(stream[done * stride :][:stride], [gaps, gaps + steps]))
                begin += 1

    def _fill(self, begin: int, end: int, parts: Sequence[Array], room: Sequence[int]) -> tuple[int, int]:
        gaps, steps, rest = parts
        rooms = (room[0] // _PART, room[1] // _PAIR, room[2] // _PART)
        streams = (gaps.view("<u2"), steps.view("<u4"), rest.view("<u2"), self._law.stride, rooms)
        out = (self.ends[begin : end + 1], self.ids, self.weights, self.at)
        done, self.at, why = fill(streams, self._words[begin:end], self._law.facts, out)
        return done, why

    def _alone(self, slot: int, parts: Sequence[Array]) -> None:
        """Draws a slot that needs more keystream than its own part. The rest of it lies further up in the counter's range."""
        more = 4 * self._law.stride + _BEYOND
        while True:
            counter = FURTHER + ((self._first + slot) << _FURTHER_BITS)
            further = [keystream(self._secret, counter + (which << _FURTHER_BITS - 2), more) for which in range(len(parts))]
            longer = [np.concatenate([a, np.frombuffer(b, dtype=np.uint8)]) for a, b in zip(parts, further, strict=True)]
            gaps, steps, rest = (len(part) for part in longer)
            done, why = self._fill(slot, slot + 1, longer, (gaps, steps, rest - _BEYOND))
            if why == DONE and done == 1:
                return
            more *= 2 if why == SHORT else 1
            if why == FULL:
                self._grow()

    def _grow(self) -> None:
        more = len(self.ids) + self._law.size
        self.ids = np.concatenate([self.ids, np.empty(more, dtype=np.int32)])
        self.weights = np.concatenate([self.weights, np.empty(more)])


@lru_cache(maxsize=16)
def _ladders(size: int, rate: Fraction, bits: int, least: int) -> BoundTables:
    ratio, above, period = _power(-rate), _above(-rate, least), _power(-rate * (1 << bits))
    gaps = [_UNIT - left for left in _falling(_UNIT - above, size, GAP_BITS)]
    high = [_UNIT - left for left in _falling(period, 1 << 20, REACH_BITS)]
    even = (_UNIT - (_UNIT >> EVEN_BITS)) >> bits  # of each step's last bits; the ladder has what is left of their chances
    upto = [(_UNIT - left) * _UNIT // (_UNIT - period) for left in _falling(ratio, (1 << bits) - 1, REACH_BITS)]
    low = [(one - even * (i + 1)) << EVEN_BITS for i, one in enumerate(upto)]
    return _as_ladders([gaps, high, low, [ratio * _UNIT // (_UNIT + ratio)]], stops=len(gaps) < size)


def _above(fall: Fraction, least: int) -> int:
    """P(Y >= least) in units, for a least above 0 and a law whose likelihood falls by exp of this much a step."""
    return _power(fall * least) * _UNIT // (_UNIT + _power(fall))


def _falling(ratio: int, most: int, bits: int) -> Iterator[int]:
    """The ratio's powers 1, 2, ..., `most` in units, as long as they are above 2^-bits."""
    power = ratio
    for _ in range(most):
        if power >> (_BITS - bits) == 0:
            return
        yield power
        power = power * ratio >> _BITS


def _as_ladders(laws: list[list[int]], *, stops: bool) -> BoundTables:
    """Cumulative chances in units, law by law, in the order of the kernel's names for them."""
    fixed = [[bound >> (_BITS - BOUND_BITS) for bound in law] for law in laws]
    begins = LAWS * PAGE + np.cumsum([0, *map(len, fixed)])[:-1]
    top = BOUND_BITS - FIRST_BITS
    within = [np.searchsorted(np.array([one >> top for one in law], dtype=np.int64), np.arange(PAGE)) for law in fixed]
    known = [(one[1:] == one[:-1]) & (one[:-1] <= np.iinfo(np.int16).max) for one in within]
    if stops:  # the kernel has to look where there is nothing so far
        known[GAPS] &= within[GAPS][:-1] < len(fixed[GAPS])
    sure = np.array([np.where(those, one[:-1], -1) for those, one in zip(known, within, strict=True)]).astype(np.int16)
    flat, word = [bound for law in fixed for bound in law], (1 << 64) - 1
    further = [np.array([one >> shift & word for one in flat], dtype=np.uint64) for shift in range(top - 64, -1, -64)]
    return BoundTables(sure, np.concatenate([(np.array(within) + begins[:, None]).ravel().astype(np.uint64), *further]))


def _quick(sure: Array) -> Array:
    """What fewer of the first bits decide already."""
    alike = sure[: PAGE - 1].reshape(1 << QUICK_BITS, -1)
    return np.where((alike == alike[:, :1]).all(axis=1), alike[:, 0], -1).astype(np.int16)


def _power(exponent: Fraction) -> int:
    """exp in units."""
    return exponential(exponent, _UNIT, _DIGITS)
