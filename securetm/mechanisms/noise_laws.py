"""The laws of noise on whole numbers: narrow ones as tables of 128-bit cumulative chances, wide ones as staircases.

Nothing here asks for randomness: the samplers do, and give it to the inner loops, which do not run in constant time.

- A table's weights come from recurrences in whole numbers of about 250 bits, so that a rounded bound is off by less than 2^-127
  and a table of N outcomes by N 2^-127 in total variation; what lies beyond a table is added to that.
- A staircase above the law's weights is made of whole numbers, so that a block is proposed exactly. A place in the block and a
  height in its stair are uniform. Whether the height is below the law's weight is decided by the block's floor for most draws,
  in double precision where that is certain, and with a hundred digits where it is not.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array
from securetm.data_classes import dataclass

UNIT = 1 << 240  # the weight at the centre
BEYOND = 2.0**-120  # every table reaches so far that more than this is never left out
EXACT = Context(prec=100, rounding=ROUND_HALF_EVEN, Emin=-(10**15), Emax=10**15)
_TWO_PI = Decimal("6.283185307179586476925286766559005768394338798750211641949889184615632812572417997256069650684234136")
ROOT_OF_TWO_PI = int(EXACT.multiply(EXACT.sqrt(_TWO_PI), UNIT))
_WORD = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class CumulativeTable:
    """Outcomes first, first + 1, ...: bound i is the chance of the first i + 1 of them, in two words of 64 bits."""

    first: int
    high: Array
    low: Array
    guide: Array
    shift: int
    variance: float

    @property
    def outcomes(self) -> int:
        return len(self.high) + 1

    def bound(self, i: int) -> int:
        """Bound i times 2^128."""
        return int(self.high[i]) << 64 | int(self.low[i])


def symmetric_table(weights: Sequence[int]) -> CumulativeTable:
    """The table of a law on -K..K, given the weights of 0..K in any unit; those too small for the unit are left out."""
    weights = weights[: next(k for k in range(len(weights), 0, -1) if weights[k - 1])]
    top, total = len(weights) - 1, 2 * sum(weights) - weights[0]
    sums = accumulate(weights[abs(k)] for k in range(-top, top))
    bounds = [(one << 128) // total for one in sums]
    high = np.array([one >> 64 for one in bounds], dtype=np.uint64)
    low = np.array([one & _WORD for one in bounds], dtype=np.uint64)
    guide, shift = guide_of(high, 64)
    variance = float(Fraction(2 * sum(k * k * one for k, one in enumerate(weights)), total))
    return CumulativeTable(-top, high, low, guide, shift, variance)


def guide_of(bounds: Array, width: int) -> tuple[Array, int]:
    """Where to look, by a word's first bits: how many bounds are below every word with these; and the bits to drop."""
    bits = min(max(len(bounds).bit_length() + 1, 8), 16)
    shift = width - bits
    starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(shift)
    return np.append(np.searchsorted(bounds, starts), len(bounds)).astype(np.int64), shift


# ---- weights of 0, 1, ..., K, the law being symmetric -------------------------------------------------------------------


def laplace_weights(scale: float) -> list[int]:
    """exp(-k / scale), as far as 86 scales: exp(-86) is 2^-124."""
    ratio = exponential(-1 / Fraction(scale))
    weights = [UNIT]
    for _ in range(math.ceil(86 * scale) + 1):
        weights.append(weights[-1] * ratio // UNIT)
    return weights


def gaussian_weights(sigma: float) -> list[int]:
    """exp(-k^2 / 2 sigma^2), as far as 13.2 deviations: the next weight is below 2^-125. Each ratio follows from the last."""
    narrowness = 1 / (2 * Fraction(sigma) ** 2)
    ratio, change = exponential(-narrowness), exponential(-2 * narrowness)
    weights = [UNIT]
    for _ in range(math.ceil(13.2 * sigma) + 1):
        weights.append(weights[-1] * ratio // UNIT)
        ratio = ratio * change // UNIT
    return weights


def rounded_weights(sigma: float) -> list[int]:
    """What a Gaussian leaves in the cells k - 1/2 .. k + 1/2, as far as 13.2 deviations."""
    inside = [0, *(error_integral((k + Fraction(1, 2)) / Fraction(sigma)) for k in range(math.ceil(13.2 * sigma) + 1))]
    return [2 * inside[1], *(after - before for before, after in pairwise(inside[1:]))]


def error_integral(x: Fraction) -> int:
    """The chance that a standard Gaussian lies in 0..x, in units; beyond 14 it is one half, to 2^-145.

    The series exp(-x^2/2) (x + x^3/3 + x^5/15 + ...) has no cancellation.
    """
    if x > 14:
        return UNIT // 2
    ratio = int(x * x * UNIT)
    term = int(x * UNIT)
    total, n = 0, 1
    while term:
        total += term
        n += 2
        term = term * ratio // (n * UNIT)
    return total * UNIT * UNIT // (exponential(x * x / 2) * ROOT_OF_TWO_PI)  # the exponential of -x^2/2 would lose digits


def skellam_weights(variance: float) -> list[int]:
    """Bessel functions I_k(variance) by Miller's downward recurrence, which starts so far out that the start does not matter.

    I_{k-1} = I_{k+1} + (2k / variance) I_k adds positive numbers only. Starting with 0 and 1 is wrong by (I_start / I_k)^2
    relatively, nearly, since I_k K_k is about 1 / 2 sqrt(variance^2 + k^2): by less than 2^-100 at the table's end.
    """
    top, start = skellam_reach(variance, 124), skellam_reach(variance, 200) + 2
    value = Fraction(variance)
    twice, below = 2 * value.denominator, value.numerator
    after, now = 0, 1 << 128
    weights = []
    for k in range(start, 0, -1):
        after, now = now, after + now * (twice * k) // below
        weights.append(now)
    return weights[: -top - 2 : -1]


def skellam_reach(variance: float, bits: float) -> int:
    """A bound that a Skellam variable exceeds with chance below 2^-bits (Chernoff's, both sides)."""

    def exponent(k: float) -> float:
        return k * math.asinh(k / variance) - k * k / (math.hypot(variance, k) + variance)

    high = 1
    while exponent(high) < (bits + 1) * math.log(2):
        high *= 2
    return bisect_left(range(high), (bits + 1) * math.log(2), lo=1, key=exponent)


def exponential(power: Fraction, unit: int = UNIT, digits: int = 100) -> int:
    """exp in units, computed to so many digits."""
    with localcontext(EXACT, prec=digits):
        return int((Decimal(power.numerator) / Decimal(power.denominator)).exp() * unit)


LAPLACE, GAUSSIAN, ROUNDED, POISSON = 0, 1, 2, 3
MARGIN = 2.0**-40  # what double precision decides must be clearer than this; its errors stay below 2^-42
BLOCK_BITS = 32  # they choose the block, and how high up in its stair


@njit(inline="always")
def _place(word: Any, bounds: Array, guide: Array, shift: int) -> int:
    """The number of bounds below the word. The guide narrows the search by the word's first bits."""
    start = word >> np.uint64(shift)
    low: int = guide[start]
    high: int = guide[start + np.uint64(1)]
    while low < high:
        middle = (low + high) >> 1
        if bounds[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def look_up(words: Array, bounds: Array, guide: Array, shift: int, first: int, out: Array) -> int:
    """Writes one outcome per word. Returns how many words equal a bound: their outcomes are not decided yet."""
    undecided = 0
    for i in range(len(words)):
        place = _place(words[i], bounds, guide, shift)
        out[i] = place + first
        undecided += place < len(bounds) and bounds[place] == words[i]
    return undecided


@njit(cache=True, nogil=True)
def add_surely(words: Array, slots: Array, sure: int, bits: int, sign: int, out: Array, where: Array, kept: Array) -> int:
    """Adds the value of each 32-bit word below `sure`. Keeps the other words and their places, and returns how many.

    A word below `sure` has a slot in its first bits and a place in its last bits. The first loop has no branch to mispredict;
    what it adds for a kept word is the place alone, which the second loop takes off again.
    """
    shift = np.uint32(BLOCK_BITS - round(np.log2(len(slots))))
    mask = (np.int64(1) << bits) - 1
    count = np.uint64(0)
    for i in range(len(words)):
        word = words[i]
        out[i] += sign * ((np.int64(slots[word >> shift]) << bits) + (np.int64(word) & mask))
        where[count] = i
        count += np.uint64(np.int64(word) >= sure)
    for k in range(count):
        kept[k] = words[where[k]]
        out[where[k]] -= sign * (np.int64(kept[k]) & mask)
    return int(count)


@njit(cache=True, nogil=True)
def climb(
    words: Array, coins: Array, tops: Any, law: Any, sign: int, out: Array, where: Array, start: int, again: int
) -> tuple[int, int]:
    """Decides the kept words from `start` on. Returns the first that it could not decide, and how many propose anew.

    The word chooses a block and a level in its stair, the coin a place and a point above the level. Most levels are below what
    the whole block accepts. Coordinates that propose anew are moved to the front of `where`.
    """
    (sure, bounds, guide, shift, lift, stairs, floors, height), (shape, scale, bits) = tops, law
    coin_bits = np.uint64(64 - bits)
    step = 2.0 ** -float(coin_bits)
    mask = (np.uint64(1) << coin_bits) - np.uint64(1)
    middle = len(stairs) // 2
    for i in range(start, len(words)):
        rank = np.int64(words[i]) - sure
        block = _place(np.uint64(rank), bounds, guide, shift)
        accepted = False
        if block < len(stairs):
            level = lift[block] + rank
            value = (np.int64(block - middle) << bits) + np.int64(coins[i] >> coin_bits)
            accepted = level + 1 <= floors[block]
            if not accepted:
                point = float(level) + float(coins[i] & mask) * step
                gap = (point - height * density(int(value), shape, scale)) / stairs[block]
                if abs(gap) <= MARGIN:
                    return i, again
                accepted = gap < 0
            if accepted:
                out[where[i]] += sign * value
        if not accepted:
            where[again] = where[i]
            again += 1
    return len(words), again


@njit(cache=True, nogil=True)
def density(value: int, shape: int, scale: float) -> float:
    """The law's weight of one whole number in double precision, 1 at the centre (or nearly)."""
    if shape == POISSON:
        return _poisson(value, scale)
    x = float(value) / scale
    if shape == LAPLACE:
        return math.exp(-abs(x))
    weight = math.exp(-0.5 * x * x)
    return weight if shape == GAUSSIAN else weight * _cell(x * x, 0.25 / (scale * scale))


@njit(inline="always")
def _cell(y: float, h: float) -> float:
    """A cell's integral by Hermite polynomials: what is left out is below 2^-52 for scales of 128 and more."""
    second, fourth = y - 1.0, (y - 6.0) * y + 3.0
    sixth = ((y - 15.0) * y + 45.0) * y - 15.0
    return 1.0 + h * (second / 6.0 + h * (fourth / 120.0 + h * sixth / 5040.0))


@njit(inline="always")
def _poisson(value: int, rate: float) -> float:
    """Relative to the chance of floor(rate), `value` away from it: Stirling's formula, so written that nothing cancels.

    With u = k / rate - 1, k log(k / rate) - k + rate is rate (u^2/2 - u^3/6 + u^4/12 - ...); rates are 2^23 and more.
    """
    centre = math.floor(rate)
    lean = centre - rate
    part = _entropy((value + lean) / rate) - _entropy(lean / rate)
    return math.exp(-rate * part - 0.5 * math.log1p(value / centre) + value / (12.0 * centre * (centre + value)))


@njit(inline="always")
def _entropy(u: float) -> float:
    """(1 + u) log(1 + u) - u for |u| below 0.006, to double precision."""
    total = 0.0
    for n in range(11, 1, -1):
        total = 1.0 / (n * (n - 1)) - u * total
    return u * u * total


_STIRLING = (
    (1, 12, 1), (-1, 360, 3), (1, 1260, 5), (-1, 1680, 7), (1, 1188, 9), (-691, 360360, 11), (1, 156, 13), (-3617, 122400, 15),
    (43867, 244188, 17), (-174611, 125400, 19),
)  # fmt: skip
_REACH = {LAPLACE: 86.0, GAUSSIAN: 13.2, ROUNDED: 13.2, POISSON: 13.5}  # beyond it 2^-121 is left, or less
SLOT_BITS = 14  # so many slots stay in the first cache; fewer leave larger tops
_SAFE = 1e-9  # far above the errors of double precision, far below what costs time


@dataclass(frozen=True, eq=False)
class Staircase:
    """Blocks of 2^bits whole numbers on both sides of 0, which for a Poisson law stands for its rate, rounded down.

    They are proposed with chances stairs / 2^32: a word of 32 bits chooses a block and a level of its stair. Words below `sure`
    do so in slots of equal size, each wholly below its block's floor, so that the slot and a place in the block say all. After
    them come the blocks' tops, one after the other, where a point above the level has to be drawn; the last words say nothing.
    """

    shape: int
    scale: float
    bits: int
    height: int  # the law's weights are multiplied by it
    stairs: Array  # whole numbers, none below height x weight anywhere in its block
    floors: Array  # none above height x weight anywhere in its block
    slots: Array  # a block each, counted from the middle one
    sure: int  # the first word that is not in a slot
    bounds: Array  # of the tops' sums, less one
    lift: Array  # a top's word, counted from `sure`, plus this is its height
    guide: Array
    shift: int

    def exactly(self, value: int, bits: int) -> Decimal:
        """The height below which this value is accepted, times 2^bits, to ninety digits."""
        with localcontext(EXACT):
            return _exact_weight(value, self.shape, Decimal(self.scale)) * self.height * (1 << bits)


def staircase(shape: int, scale: float) -> Staircase:
    """For scales of 128 and more, and Poisson rates of 2^23 and more: 64 to 128 blocks a scale, as far as `_REACH` scales."""
    spread = math.sqrt(scale) if shape == POISSON else scale
    bits = math.frexp(spread / 64)[1] - 1
    count = math.ceil(_REACH[shape] * spread / (1 << bits)) + 1
    places = range(-count << bits, (count << bits) + 1, 1 << bits)
    edges = np.array([density(place, shape, scale) for place in places])  # weights fall on both sides of 0
    upper, lower = np.maximum(edges[1:], edges[:-1]) * (1 + _SAFE), np.minimum(edges[1:], edges[:-1]) * (1 - _SAFE)
    height = math.floor(((1 << BLOCK_BITS) - 2 * count - 1) / upper.sum())
    stairs = np.floor(upper * height).astype(np.int64) + 1
    floors = lower * height * (1 - _SAFE)
    return Staircase(shape, scale, bits, height, stairs, floors, *_layout(stairs, floors, bits))


def _layout(stairs: Array, floors: Array, bits: int) -> tuple[Array, int, Array, Array, Array, int]:
    """As many slots as fit below each block's floor, and the tops that remain. A slot's words have room for a place's bits."""
    slot_bits = min(SLOT_BITS, BLOCK_BITS - bits)
    size = 1 << (BLOCK_BITS - slot_bits)
    whole = np.floor(floors / size).astype(np.int64)
    slots = np.zeros(1 << slot_bits, dtype=np.int16)
    slots[: whole.sum()] = np.repeat(np.arange(len(stairs)) - len(stairs) // 2, whole)
    sure, tops = int(whole.sum()) * size, stairs - whole * size
    ends = np.cumsum(tops)
    bounds = (ends - 1).astype(np.uint64)
    guide, shift = guide_of(bounds, ((1 << BLOCK_BITS) - sure - 1).bit_length())
    return slots, sure, bounds, whole * size - (ends - tops), guide, shift


def _exact_weight(value: int, shape: int, scale: Decimal) -> Decimal:
    if shape == POISSON:
        centre = int(scale)
        return (value * scale.ln() - _log_factorial(centre + value) + _log_factorial(centre)).exp()
    x = Decimal(value) / scale
    if shape == LAPLACE:
        return (-abs(x)).exp()
    weight = (-x * x / 2).exp()
    return weight if shape == GAUSSIAN else weight * _exact_cell(x, 1 / (2 * scale))


def _log_factorial(whole: int) -> Decimal:
    """Stirling's series less a constant; from 2^20 on the term left out, which bounds the error, is below 2^-400."""
    n = Decimal(whole)
    terms = (Decimal(top) / (below * n**power) for top, below, power in _STIRLING)
    return (n + Decimal("0.5")) * n.ln() - n + sum(terms)


def _exact_cell(x: Decimal, half: Decimal) -> Decimal:
    """The mean of exp(-(x + u)^2 / 2) over |u| <= half, as a multiple of exp(-x^2 / 2), by Hermite polynomials."""
    before, now, power, total = Decimal(1), x, Decimal(1), Decimal(1)
    for n in range(2, 60, 2):
        before = x * now - (n - 1) * before
        power *= half * half / (n * (n - 1))
        total += before * power / (n + 1)
        now = x * before - n * now
    return total
