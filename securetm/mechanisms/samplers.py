"""Noise on whole numbers drawn as its law says, from the operating system's randomness alone. It spends no privacy by itself.

What is drawn differs from the law by no more than `failure_probability` in total variation, which is part of delta.
Drawing takes longer for some values than for others: no claim holds against an adversary that times single draws.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np

from securetm.contracts import Array, Entropy
from securetm.data_classes import dataclass
from securetm.entropy import half_words, words
from securetm.errors import BadSetting
from securetm.mechanisms.noise_laws import (
    BEYOND,
    GAUSSIAN,
    LAPLACE,
    POISSON,
    ROUNDED,
    CumulativeTable,
    Staircase,
    add_surely,
    climb,
    gaussian_weights,
    laplace_weights,
    look_up,
    rounded_weights,
    skellam_reach,
    skellam_weights,
    staircase,
    symmetric_table,
)

WIDE = 128.0  # from this scale on a staircase of blocks, below it a table
MOST_SCALE = 2.0**32
MOST_VARIANCE = 2.0**62  # of Skellam noise: rates are counted in 64 bits
WIDE_SKELLAM = 2.0**24  # from this variance on two staircases
_PIECE = 1 << 15  # draws whose words stay in the processor's cache
_PIECES = 32  # whose undecided words are decided together


class Sampler(ABC):
    """One law of noise, centred at 0 and symmetric."""

    deviation: float  # the ideal law's standard deviation

    @property
    @abstractmethod
    def failure_probability(self) -> float:
        """Total variation between one draw and the ideal law, at most."""

    @abstractmethod
    def add(self, entropy: Entropy, out: Array) -> None:
        """Adds an independent value to every coordinate, in place: int64, or int32 modulo 2^32."""

    @abstractmethod
    def _smallest(self, chance: float) -> int:
        """The reach for a chance between 0 and 1."""

    def draw(self, entropy: Entropy, n: int) -> Array:
        """n independent values, int64."""
        out = np.zeros(n, dtype=np.int64)
        self.add(entropy, out)
        return out

    def reach(self, chance: float) -> int:
        """The smallest r that a draw exceeds in absolute value with at most this chance; wide Skellam noise gives a bound."""
        if not 0 < chance < 1:
            raise BadSetting("the reach of noise", "chance", str(chance), "must be above 0 and below 1")
        return self._smallest(chance)


@lru_cache(maxsize=64)
def discrete_laplace(scale: float) -> Sampler:
    """k with chance proportional to exp(-|k| / scale)."""
    scale = _checked("discrete Laplace", "scale", scale, MOST_SCALE)
    deviation = math.sqrt(0.5) / math.sinh(0.5 / scale) if scale > 1e-3 else 0.0
    if scale < WIDE:
        return TableSampler(symmetric_table(laplace_weights(scale)), deviation)
    return StaircaseSampler(LAPLACE, scale, deviation)


@lru_cache(maxsize=64)
def discrete_gaussian(sigma: float) -> Sampler:
    """k with chance proportional to exp(-k^2 / 2 sigma^2)."""
    sigma = _checked("discrete Gaussian", "sigma", sigma, MOST_SCALE)
    if sigma < WIDE:
        return _from_table(gaussian_weights(sigma))
    return StaircaseSampler(GAUSSIAN, sigma, sigma)  # the variance differs by exp(-2 pi^2 sigma^2) relatively


@lru_cache(maxsize=64)
def rounded_gaussian(sigma: float) -> Sampler:
    """A Gaussian rounded to the nearest whole number."""
    sigma = _checked("rounded Gaussian", "sigma", sigma, MOST_SCALE)
    if sigma < WIDE:
        return _from_table(rounded_weights(sigma))
    return StaircaseSampler(ROUNDED, sigma, math.sqrt(sigma * sigma + 1 / 12))


@lru_cache(maxsize=64)
def skellam(variance: float) -> Sampler:
    """The difference of two Poisson variables of half that variance each."""
    variance = _checked("Skellam", "variance", variance, MOST_VARIANCE)
    if variance < WIDE_SKELLAM:
        return TableSampler(symmetric_table(skellam_weights(variance)), math.sqrt(variance))
    return DifferenceSampler(StaircaseSampler(POISSON, variance / 2, math.sqrt(variance / 2)), math.sqrt(variance))


def _checked(law: str, name: str, value: float, most: float) -> float:
    if not 0 < value < math.inf:
        raise BadSetting(f"{law} noise", name, str(value), "must be a finite number above 0")
    if value > most:
        instead = f"stay at or below {most:.0f}: a coarser grid needs less noise in its own steps"
        raise BadSetting(f"{law} noise", name, str(value), f"must be at most {most:.0f} to be drawn exactly", instead=instead)
    return float(value)


def _from_table(weights: list[int]) -> TableSampler:
    table = symmetric_table(weights)
    return TableSampler(table, math.sqrt(table.variance))


@dataclass(frozen=True, eq=False)
class TableSampler(Sampler):
    """64 random bits choose an outcome; where they equal a bound's first word, 64 more are compared with its second."""

    table: CumulativeTable
    deviation: float

    @property
    def failure_probability(self) -> float:
        """What the table leaves out, and each bound's rounding."""
        return BEYOND + self.table.outcomes * 2.0**-127

    def add(self, entropy: Entropy, out: Array) -> None:
        table, values = self.table, np.empty(min(len(out), _PIECE), dtype=np.int64)
        for start in range(0, len(out), _PIECE):
            part = out[start : start + _PIECE]
            drawn, found = words(entropy, len(part)), values[: len(part)]
            if look_up(drawn, table.high, table.guide, table.shift, table.first, found):
                self._decide(drawn, entropy, found)
            part += found

    def _decide(self, drawn: Array, entropy: Entropy, out: Array) -> None:
        """Several bounds may share a first word, far out; second words settle it."""
        high, low = self.table.high, self.table.low
        for i in np.flatnonzero(np.isin(drawn, high)):
            begin, end = np.searchsorted(high, drawn[i]), np.searchsorted(high, drawn[i], side="right")
            more = np.searchsorted(low[begin:end], words(entropy, 1)[0], side="right")
            out[i] = self.table.first + begin + more

    def _smallest(self, chance: float) -> int:
        """P(|X| > r) is twice the bound of -r - 1; beyond the table there is nothing."""
        most, last = int(chance * 2.0**127), -self.table.first
        return bisect_left(range(last), True, key=lambda r: self.table.bound(last - r - 1) <= most)


@dataclass(frozen=True, eq=False)
class StaircaseSampler(Sampler):
    """A block, a place in it and a height, again until the height is below the law there. Most draws take 32 bits for all."""

    shape: int
    scale: float
    deviation: float

    @cached_property
    def stairs(self) -> Staircase:
        """Made for the first draw: who only counts with the law has no use for it."""
        return staircase(self.shape, self.scale)

    @property
    def failure_probability(self) -> float:
        """What lies beyond the last block, 2^-121, and again as much for heights, of which 166 bits and more are compared."""
        return BEYOND

    def add(self, entropy: Entropy, out: Array, sign: int = 1) -> None:
        for start in range(0, len(out), _PIECE * _PIECES):
            self._add(entropy, out[start : start + _PIECE * _PIECES], sign)

    def _add(self, entropy: Entropy, out: Array, sign: int) -> None:
        one, count = self.stairs, 0
        where, kept = np.empty(len(out), dtype=np.int32), np.empty(len(out), dtype=np.uint32)
        for start in range(0, len(out), _PIECE):
            part = out[start : start + _PIECE]
            drawn = half_words(entropy, len(part))
            more = add_surely(drawn, one.slots, one.sure, one.bits, sign, part, where[count:], kept[count:])
            where[count : count + more] += start
            count += more
        if anew := self._settle(entropy, out, sign, where[:count], kept[:count]):
            values = np.zeros(anew, dtype=out.dtype)
            self._add(entropy, values, sign)
            out[where[:anew]] += values

    def _settle(self, entropy: Entropy, out: Array, sign: int, where: Array, kept: Array) -> int:
        """Decides the kept words. How many propose anew; their places come first in `where`."""
        one, coins, i, anew = self.stairs, words(entropy, len(kept)), 0, 0
        tops = (one.sure, one.bounds, one.guide, one.shift, one.lift, one.stairs, one.floors, float(one.height))
        law = (one.shape, one.scale, one.bits)
        while True:
            i, anew = climb(kept, coins, tops, law, sign, out, where, i, anew)
            if i == len(kept):
                return anew
            value, accepted = self._decide(int(kept[i]), int(coins[i]), entropy)
            if accepted:
                out[where[i]] += sign * value
            else:
                where[anew] = where[i]
                anew += 1
            i += 1

    def _decide(self, word: int, coin: int, entropy: Entropy) -> tuple[int, bool]:
        """The same comparison with 128 more bits of the height, and with the exact weight."""
        one, rank = self.stairs, word - self.stairs.sure
        block, rest = int(np.searchsorted(one.bounds, np.uint64(rank))), 64 - one.bits
        value = ((block - len(one.stairs) // 2) << one.bits) + (coin >> rest)
        more = int.from_bytes(entropy.bytes(16))
        point = (((int(one.lift[block]) + rank) << rest) + (coin & ((1 << rest) - 1)) << 128) + more
        return value, Decimal(point) < one.exactly(value, rest + 128)

    def _smallest(self, chance: float) -> int:
        """To double precision."""
        return bisect_left(range(math.ceil(90 * self.scale)), True, key=lambda r: self._exceeds(r) <= chance)

    def _exceeds(self, r: int) -> float:
        """For both Gaussians the cells' integral: it is above the discrete one's sum beyond a deviation."""
        x = (r + 0.5) / self.scale
        if self.shape == LAPLACE:
            return math.exp(-x) / math.cosh(0.5 / self.scale)
        return math.erfc(x * math.sqrt(0.5))


@dataclass(frozen=True, eq=False)
class DifferenceSampler(Sampler):
    """Two draws of a Poisson law, one less the other; both are counted from its centre, which cancels."""

    poisson: StaircaseSampler
    deviation: float

    @property
    def failure_probability(self) -> float:
        return 2 * self.poisson.failure_probability

    def add(self, entropy: Entropy, out: Array) -> None:
        self.poisson.add(entropy, out)
        self.poisson.add(entropy, out, sign=-1)

    def _smallest(self, chance: float) -> int:
        """Chernoff's bound: not the smallest, but never too small."""
        return skellam_reach(self.deviation**2, -math.log2(chance))
