"""Noise on whole numbers drawn as its law says, from the operating system's randomness alone. It spends no privacy by itself.

What is drawn differs from the law by no more than `slack` in total variation, which belongs in delta. Drawing takes longer for
some values than for others: whoever can time single draws is outside every claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Protocol

import numpy as np

from securetm.contracts import Array, Entropy
from securetm.entropy import words
from securetm.errors import NotAChance, NotAScale, TooMuchNoise
from securetm.mechanisms import noise_tables as tables
from securetm.mechanisms.noise_blocks import Staircase, staircase
from securetm.mechanisms.noise_kernels import BLOCK_BITS, GAUSSIAN, LAPLACE, POISSON, ROUNDED, look_up, look_up_blocks
from securetm.mechanisms.noise_tables import BEYOND, Table

WIDE = 128.0  # from this scale on a staircase of blocks, below it a table
MOST_SCALE = 2.0**32
MOST_VARIANCE = 2.0**62  # of Skellam noise: rates are counted in 64 bits
WIDE_SKELLAM = 2.0**24  # from this variance on two staircases
MOST_TRIALS = 1 << 32  # of a binomial, whose tables grow with the deviation
_SPARE = 1.04  # words per draw from a staircase, nearly


class Sampler(Protocol):
    """One law of noise, centred at 0 and symmetric."""

    @property
    def deviation(self) -> float:
        """The ideal law's standard deviation."""

    @property
    def slack(self) -> float:
        """Total variation between one draw and the ideal law, at most."""

    def draw(self, entropy: Entropy, n: int) -> Array:
        """n independent values, int64."""

    def reach(self, chance: float) -> int:
        """The smallest r that a draw exceeds in absolute value with at most this chance; wide Skellam noise gives a bound."""


@lru_cache(maxsize=64)
def discrete_laplace(scale: float) -> Sampler:
    """k with chance proportional to exp(-|k| / scale)."""
    scale = _checked("discrete Laplace", "scale", scale, MOST_SCALE)
    deviation = math.sqrt(0.5) / math.sinh(0.5 / scale) if scale > 1e-3 else 0.0
    if scale < WIDE:
        return FromTable(tables.symmetric_table(tables.laplace_weights(scale)), deviation)
    return FromStaircase(staircase(LAPLACE, scale), deviation)


@lru_cache(maxsize=64)
def discrete_gaussian(sigma: float) -> Sampler:
    """k with chance proportional to exp(-k^2 / 2 sigma^2)."""
    sigma = _checked("discrete Gaussian", "sigma", sigma, MOST_SCALE)
    if sigma < WIDE:
        return _from_table(tables.gaussian_weights(sigma))
    return FromStaircase(staircase(GAUSSIAN, sigma), sigma)  # the variance differs by exp(-2 pi^2 sigma^2) relatively


@lru_cache(maxsize=64)
def rounded_gaussian(sigma: float) -> Sampler:
    """A Gaussian rounded to the nearest whole number."""
    sigma = _checked("rounded Gaussian", "sigma", sigma, MOST_SCALE)
    if sigma < WIDE:
        return _from_table(tables.rounded_weights(sigma))
    return FromStaircase(staircase(ROUNDED, sigma), math.sqrt(sigma * sigma + 1 / 12))


@lru_cache(maxsize=64)
def skellam(variance: float) -> Sampler:
    """The difference of two Poisson variables of half that variance each."""
    variance = _checked("Skellam", "variance", variance, MOST_VARIANCE)
    if variance < WIDE_SKELLAM:
        return FromTable(tables.symmetric_table(tables.skellam_weights(variance)), math.sqrt(variance))
    return Difference(FromStaircase(staircase(POISSON, variance / 2), math.sqrt(variance / 2)), math.sqrt(variance))


@lru_cache(maxsize=16)
def centred_binomial(trials: int) -> Sampler:
    """Heads of that many fair coins, less half of their number, which must be even."""
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 2 or trials % 2:
        raise NotAScale("centred binomial", "trials", str(trials), "an even whole number above 0")
    if trials > MOST_TRIALS:
        raise TooMuchNoise("centred binomial", "trials", str(trials), str(MOST_TRIALS))
    return FromTable(tables.symmetric_table(tables.binomial_weights(trials)), math.sqrt(trials) / 2)


def _checked(law: str, name: str, value: float, most: float) -> float:
    if not 0 < value < math.inf:
        raise NotAScale(law, name, str(value), "a finite number above 0")
    if value > most:
        raise TooMuchNoise(law, name, str(value), f"{most:.0f}")
    return float(value)


def _check_chance(chance: float) -> None:
    if not 0 < chance < 1:
        raise NotAChance(str(chance))


def _from_table(weights: list[int]) -> FromTable:
    table = tables.symmetric_table(weights)
    return FromTable(table, math.sqrt(table.variance))


@dataclass(frozen=True, eq=False)
class FromTable:
    """64 random bits choose an outcome; where they equal a bound's first word, 64 more are compared with its second."""

    table: Table
    deviation: float

    @property
    def slack(self) -> float:
        """What the table leaves out, and each bound's rounding."""
        return BEYOND + self.table.outcomes * 2.0**-127

    def draw(self, entropy: Entropy, n: int) -> Array:
        """n independent values."""
        drawn, out = words(entropy, n), np.empty(n, dtype=np.int64)
        table = self.table
        if look_up(drawn, table.high, table.guide, table.shift, table.first, out):
            self._decide(drawn, entropy, out)
        return out

    def _decide(self, drawn: Array, entropy: Entropy, out: Array) -> None:
        """Several bounds may share a first word, far out; second words settle it."""
        high, low = self.table.high, self.table.low
        for i in np.flatnonzero(np.isin(drawn, high)):
            begin, end = np.searchsorted(high, drawn[i]), np.searchsorted(high, drawn[i], side="right")
            more = np.searchsorted(low[begin:end], words(entropy, 1)[0], side="right")
            out[i] = self.table.first + begin + more

    def reach(self, chance: float) -> int:
        """The smallest r that |draw| exceeds with at most this chance; beyond the table there is nothing."""
        _check_chance(chance)
        most, low, high = int(chance * 2.0**127), -1, -self.table.first
        while high - low > 1:  # P(|X| > r) is twice the bound of -r - 1
            middle = (low + high) // 2
            above = self.table.bound(-middle - 1 - self.table.first) > most
            low, high = (middle, high) if above else (low, middle)
        return high


@dataclass(frozen=True, eq=False)
class FromStaircase:
    """A block, a place in it, and a coin, again until the coin accepts the place."""

    stairs: Staircase
    deviation: float

    @property
    def slack(self) -> float:
        """What lies beyond the last block; coins are compared to 128 bits, and only once in 2^39 draws beyond 64."""
        return BEYOND

    def draw(self, entropy: Entropy, n: int) -> Array:
        """n independent values."""
        out, made, one = np.empty(n, dtype=np.int64), 0, self.stairs
        while made < n:
            drawn = words(entropy, math.ceil((n - made) * _SPARE) + 32)
            facts = (one.bounds, one.guide, one.shift, one.sure, one.factor, one.shape, one.scale, one.bits)
            more, used, stopped = look_up_blocks(drawn, *facts, out[made:])
            made += more
            if stopped:
                value, accepted = self._decide(int(drawn[used]), int(drawn[used + 1]), entropy)
                out[made : made + accepted] = value
                made += accepted
        return out

    def _decide(self, word: int, more: int, entropy: Entropy) -> tuple[int, bool]:
        """The same comparison with 64 more bits of the coin, and with the exact chance."""
        one, places = self.stairs, 64 - BLOCK_BITS - self.stairs.bits
        block = int(np.searchsorted(one.bounds, np.uint64(word >> (64 - BLOCK_BITS))))
        low = word & ((1 << (64 - BLOCK_BITS)) - 1)
        value = ((block - len(one.stairs) // 2) << one.bits) + (low >> places)
        coin = ((low & ((1 << places) - 1)) << 128) + (more << 64) + int(words(entropy, 1)[0])
        return value, Decimal(coin) < one.exactly(value, places + 128)

    def reach(self, chance: float) -> int:
        """The smallest r that |draw| exceeds with at most this chance, to double precision."""
        _check_chance(chance)
        low, high = -1, math.ceil(90 * self.stairs.scale)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._exceeds(middle) > chance else (low, middle)
        return high

    def _exceeds(self, r: int) -> float:
        """For both Gaussians the cells' integral: it is above the discrete one's sum beyond a deviation."""
        x = (r + 0.5) / self.stairs.scale
        if self.stairs.shape == LAPLACE:
            return math.exp(-x) / math.cosh(0.5 / self.stairs.scale)
        return math.erfc(x * math.sqrt(0.5))


@dataclass(frozen=True, eq=False)
class Difference:
    """Two draws of a Poisson law, one less the other; both are counted from its centre, which cancels."""

    poisson: FromStaircase
    deviation: float

    @property
    def slack(self) -> float:
        """Both draws'."""
        return 2 * self.poisson.slack

    def draw(self, entropy: Entropy, n: int) -> Array:
        """n independent values."""
        out: Array = self.poisson.draw(entropy, n)
        out -= self.poisson.draw(entropy, n)
        return out

    def reach(self, chance: float) -> int:
        """Chernoff's bound: not the smallest, but never too small."""
        _check_chance(chance)
        return tables.skellam_reach(self.deviation**2, -math.log2(chance))
