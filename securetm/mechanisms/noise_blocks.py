"""Wide laws of noise: a staircase above the law's weights, and which of its blocks each draw is accepted in. It draws nothing.

The staircase is made of whole numbers, so proposing a block is exact; a place in it is uniform; accepting it with chance
weight / stair is decided in double precision where that is certain, and with a hundred digits where it is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext

import numpy as np

from securetm.contracts import Array
from securetm.mechanisms.noise_kernels import BLOCK_BITS, GAUSSIAN, LAPLACE, POISSON, ROUNDED, density
from securetm.mechanisms.noise_tables import guide_of

_EXACT = Context(prec=100, rounding=ROUND_HALF_EVEN, Emin=-(10**15), Emax=10**15)
_STIRLING = (
    (1, 12, 1), (-1, 360, 3), (1, 1260, 5), (-1, 1680, 7), (1, 1188, 9), (-691, 360360, 11), (1, 156, 13), (-3617, 122400, 15),
    (43867, 244188, 17), (-174611, 125400, 19),
)  # fmt: skip
_REACH = {LAPLACE: 86.0, GAUSSIAN: 13.2, ROUNDED: 13.2, POISSON: 13.5}  # beyond it 2^-121 is left, or less
_SAFE = 1e-9  # far above the errors of double precision, far below what costs time


@dataclass(frozen=True, eq=False)
class Staircase:
    """Blocks of 2^bits whole numbers on both sides of 0, which for a Poisson law stands for its rate, rounded down.

    They are proposed with chances stairs / 2^32; what is left proposes nothing.
    """

    shape: int
    scale: float
    bits: int
    height: int  # the law's weights are multiplied by it
    stairs: Array  # whole numbers, none below height x weight anywhere in its block
    bounds: Array  # of the stairs' sums, less one
    guide: Array
    shift: int
    sure: Array  # below what every place in the block is accepted with
    factor: Array  # height / stair

    def exactly(self, value: int, bits: int) -> Decimal:
        """The chance that this value is accepted with, times 2^bits, to ninety digits."""
        stair = int(self.stairs[(value >> self.bits) + len(self.stairs) // 2])
        with localcontext(_EXACT):
            return _exact_weight(value, self.shape, Decimal(self.scale)) * self.height * (1 << bits) / stair


def staircase(shape: int, scale: float) -> Staircase:
    """For scales of 128 and more, and Poisson rates of 2^23 and more: 64 to 128 blocks a scale, as far as `_REACH` scales."""
    spread = math.sqrt(scale) if shape == POISSON else scale
    bits = math.frexp(spread / 64)[1] - 1
    count = math.ceil(_REACH[shape] * spread / (1 << bits)) + 1
    edges = _weights(np.arange(-count, count + 1) * (1 << bits), shape, scale)  # weights fall on both sides of 0
    upper, lower = np.maximum(edges[1:], edges[:-1]) * (1 + _SAFE), np.minimum(edges[1:], edges[:-1]) * (1 - _SAFE)
    height = math.floor(((1 << BLOCK_BITS) - 2 * count - 1) / upper.sum())
    stairs = np.floor(upper * height).astype(np.int64) + 1
    bounds = (np.cumsum(stairs) - 1).astype(np.uint64)
    guide, shift = guide_of(bounds, BLOCK_BITS)
    sure = lower * height / stairs * (1 - _SAFE)
    return Staircase(shape, scale, bits, height, stairs, bounds, guide, shift, sure, height / stairs)


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
