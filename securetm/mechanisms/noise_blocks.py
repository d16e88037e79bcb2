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
from securetm.mechanisms.noise_kernels import BLOCK_BITS, GAUSSIAN, LAPLACE, density
from securetm.mechanisms.noise_tables import guide_of

_EXACT = Context(prec=100, rounding=ROUND_HALF_EVEN, Emin=-(10**15), Emax=10**15)
_SAFE = 1e-9  # far above the errors of double precision, far below what costs time


@dataclass(frozen=True, eq=False)
class Staircase:
    """Blocks of 2^bits whole numbers on both sides of 0, proposed with chances stairs / 2^32; what is left proposes nothing."""

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
    """For scales of 128 and more: 64 to 128 blocks a scale, as far as 86 scales (Laplace) or 13.2 (Gaussian)."""
    bits = math.frexp(scale / 64)[1] - 1
    count = math.ceil((86 if shape == LAPLACE else 13.2) * scale / (1 << bits)) + 1
    nearest = np.arange(count) * (1 << bits)
    farthest = nearest + (1 << bits)  # one beyond the block, which covers both sides of 0
    upper, lower = _weights(nearest, shape, scale) * (1 + _SAFE), _weights(farthest, shape, scale) * (1 - _SAFE)
    height = math.floor(((1 << BLOCK_BITS) - 2 * count - 1) / (2 * upper.sum()))
    half = np.floor(upper * height).astype(np.int64) + 1
    stairs = np.concatenate((half[::-1], half))
    bounds = (np.cumsum(stairs) - 1).astype(np.uint64)
    guide, shift = guide_of(bounds, BLOCK_BITS)
    sure = np.concatenate((lower[::-1], lower)) * height / stairs * (1 - _SAFE)
    return Staircase(shape, scale, bits, height, stairs, bounds, guide, shift, sure, height / stairs)


def _weights(values: Array, shape: int, scale: float) -> Array:
    return np.array([density(value, shape, scale) for value in values.tolist()])


def _exact_weight(value: int, shape: int, scale: Decimal) -> Decimal:
    x = Decimal(value) / scale
    if shape == LAPLACE:
        return (-abs(x)).exp()
    weight = (-x * x / 2).exp()
    return weight if shape == GAUSSIAN else weight * _cell(x, 1 / (2 * scale))


def _cell(x: Decimal, half: Decimal) -> Decimal:
    """The mean of exp(-(x + u)^2 / 2) over |u| <= half, as a multiple of exp(-x^2 / 2), by Hermite polynomials."""
    before, now, power, total = Decimal(1), x, Decimal(1), Decimal(1)
    for n in range(2, 60, 2):
        before = x * now - (n - 1) * before
        power *= half * half / (n * (n - 1))
        total += before * power / (n + 1)
        now = x * before - n * now
    return total
