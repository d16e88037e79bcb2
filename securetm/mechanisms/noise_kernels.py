"""The two inner loops of drawing noise: a place in a table, and a place inside a block of it. They ask for no randomness.

Each stops where the words it was given do not decide, and says so; they do not run in constant time.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array

LAPLACE, GAUSSIAN, ROUNDED, POISSON = 0, 1, 2, 3
MARGIN = 2.0**-40  # what double precision decides must be clearer than this; its errors stay below 2^-42
BLOCK_BITS = 32  # of a word: they choose the block, the rest the place in it


@njit(inline="always")
def _place(word: int, bounds: Array, guide: Array, shift: int) -> int:
    """How many bounds are below the word; the guide has the answer for its first bits, or nearly."""
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


@njit(cache=True)
def look_up(words: Array, bounds: Array, guide: Array, shift: int, first: int, out: Array) -> int:
    """One outcome a word, and how many words equal a bound: those outcomes are not decided yet."""
    undecided = 0
    for i in range(len(words)):
        place = _place(words[i], bounds, guide, shift)
        out[i] = place + first
        undecided += place < len(bounds) and bounds[place] == words[i]
    return undecided


@njit(cache=True)
def look_up_blocks(
    words: Array,
    bounds: Array,
    guide: Array,
    shift: int,
    sure: Array,
    factor: Array,
    shape: int,
    scale: float,
    bits: int,
    out: Array,
) -> tuple[int, int, int]:
    """Fills `out` while there are words: how many outcomes, the words used, and 1 if the two words there decide nothing.

    A word proposes a block, a place in it and the first bits of a coin; most coins are below what the whole block accepts.
    """
    made = used = 0
    coin_bits = np.uint64(64 - BLOCK_BITS - bits)
    step = 2.0 ** -float(coin_bits)
    middle = len(sure) // 2
    while made < len(out) and used + 2 <= len(words):
        word = words[used]
        used += 1
        block = _place(word >> np.uint64(64 - BLOCK_BITS), bounds, guide, shift)
        if block >= len(sure):
            continue
        low = word & np.uint64((1 << (64 - BLOCK_BITS)) - 1)
        value = ((block - middle) << bits) + np.int64(low >> coin_bits)
        coin = float(low & ((np.uint64(1) << coin_bits) - np.uint64(1)))
        if (coin + 1.0) * step <= sure[block]:
            out[made] = value
            made += 1
            continue
        more = words[used]
        used += 1
        gap = (coin + float(more) * 2.0**-64) * step - factor[block] * density(int(value), shape, scale)
        if abs(gap) <= MARGIN:
            return made, used - 2, 1
        if gap < 0:
            out[made] = value
            made += 1
    return made, used, 0


@njit(cache=True)
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
