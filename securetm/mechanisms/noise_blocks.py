"""Wide laws of noise as a staircase above the law's weights, for rejection sampling. It draws nothing.

The staircase is made of whole numbers, so a block is proposed exactly. A place in the block and a height in its stair are
uniform. Whether the height is below the law's weight is decided by the block's floor for most draws, in double precision where
that is certain, and with a hundred digits where it is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np

from securetm.contracts import Array
from securetm.mechanisms.noise_kernels import BLOCK_BITS, GAUSSIAN, LAPLACE, POISSON, ROUNDED, density
from securetm.mechanisms.noise_tables import EXACT, guide_of

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
    edges = _weights(np.arange(-count, count + 1) * (1 << bits), shape, scale)  # weights fall on both sides of 0
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


def _weights(values: Array, shape: int, scale: float) -> Array:
    return np.array([density(value, shape, scale) for value in values.tolist()])


def _exact_weight(value: int, shape: int, scale: Decimal) -> Decimal:
    if shape == POISSON:
        centre = int(scale)
        return (value * scale.ln() - _log_factorial(centre + value) + _log_factorial(centre)).exp()
    x = Decimal(value) / scale
    if shape == LAPLACE:
        return (-abs(x)).exp()
    weight = (-x * x / 2).exp()
    return weight if shape == GAUSSIAN else weight * _cell(x, 1 / (2 * scale))


def _log_factorial(whole: int) -> Decimal:
    """Stirling's series less a constant; from 2^20 on the term left out, which bounds the error, is below 2^-400."""
    n = Decimal(whole)
    terms = (Decimal(top) / (below * n**power) for top, below, power in _STIRLING)
    return (n + Decimal("0.5")) * n.ln() - n + sum(terms)


def _cell(x: Decimal, half: Decimal) -> Decimal:
    """The mean of exp(-(x + u)^2 / 2) over |u| <= half, as a multiple of exp(-x^2 / 2), by Hermite polynomials."""
    before, now, power, total = Decimal(1), x, Decimal(1), Decimal(1)
    for n in range(2, 60, 2):
        before = x * now - (n - 1) * before
        power *= half * half / (n * (n - 1))
        total += before * power / (n + 1)
        now = x * before - n * now
    return total
