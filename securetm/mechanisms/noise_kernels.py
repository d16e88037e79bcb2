"""The inner loops of drawing noise: a place in a table, and a place inside a block of a staircase. They ask for no randomness.

They report the words that do not decide a draw. They do not run in constant time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array

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
