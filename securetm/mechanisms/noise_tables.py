"""The laws of noise on whole numbers as tables of 128-bit cumulative chances. It draws nothing.

Weights come from recurrences in whole numbers of about 250 bits, so that a rounded bound is off by less than 2^-127 and a
table of N outcomes by N 2^-127 in total variation; what lies beyond a table is added to that.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np

from securetm.contracts import Array

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
        """How many there are."""
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
