"""Laplace noise on one-word counts, thresholded, drawn only where something is left of it. It spends no privacy by itself.

A slot holds one word, so its counts are a single 1 among zeros. Noise of scale 1 / epsilon on every count, and then zeros for
all that is not above the threshold: few counts are left, and only these are drawn. They are a function of a secret and of the
slot's number alone, so they need not be stored.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securetm.contracts import Array
from securetm.data_classes import dataclass
from securetm.mechanisms.noise_laws import exponential
from securetm.mechanisms.slot_bound_kernels import (
    DONE,
    EVEN_BITS,
    FIRST_BITS,
    FULL,
    GAPS,
    HIGH,
    LAWS,
    MORE_WORDS,
    MOST_OF_A_STEP,
    PAGE,
    QUICK_BITS,
    SHORT,
    BoundTables,
    fill,
    shuffle,
)

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


# ---- ladders -------------------------------------------------------------------------------------------------------


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
