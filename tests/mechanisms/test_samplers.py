"""Noise has the law it names: goodness of fit with mutants that fail, undecided draws settled right, opendp as oracle."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import ive

from securetm.contracts import Array
from securetm.entropy import OperatingSystem, Seeded
from securetm.errors import NotAChance, NotAScale, TooMuchNoise
from securetm.mechanisms import samplers
from securetm.mechanisms.noise_kernels import GAUSSIAN, LAPLACE, MARGIN, POISSON, ROUNDED, climb, density
from securetm.mechanisms.samplers import (
    Difference,
    FromStaircase,
    FromTable,
    Sampler,
    centred_binomial,
    discrete_gaussian,
    discrete_laplace,
    rounded_gaussian,
    skellam,
)

DRAWS = 1_000_000
CELLS = 200
RARE = 1e-6  # of a true sampler's failures; every case below fails about that often

Below = Callable[[Array], Array]  # the chance of at most k


def laplace_below(scale: float) -> Below:
    side = 1 / (1 + math.exp(-1 / scale))
    return lambda k: np.where(
        k < 0, side * np.exp(np.minimum(k, 0) / scale), 1 - side * np.exp(-(np.maximum(k, 0) + 1) / scale)
    )


def rounded_below(sigma: float) -> Below:
    return lambda k: stats.norm.cdf((k + 0.5) / sigma)


def gaussian_below(sigma: float) -> Below:
    """By summing the weights; where there are too many, the integral, which is right to exp(-2 pi^2 sigma^2)."""
    if sigma > 1000:
        return rounded_below(sigma)
    every = np.arange(-math.ceil(12 * sigma) - 2, math.ceil(12 * sigma) + 3)
    weights = np.exp(-0.5 * (every / sigma) ** 2)
    sums = np.cumsum(weights / weights.sum())
    return lambda k: sums[np.clip(np.asarray(k, dtype=np.int64) - every[0], 0, len(every) - 1)]


def skellam_below(variance: float) -> Below:
    """Bessel functions by scipy, exponentially scaled; beyond a variance of 1e6 a Gaussian differs by less than 1e-6."""
    if variance > 1e6:
        return rounded_below(math.sqrt(variance))
    top = math.ceil(12 * math.sqrt(variance)) + 20
    sums = np.cumsum(ive(np.abs(np.arange(-top, top + 1)), variance))
    return lambda k: sums[np.clip(np.asarray(k, dtype=np.int64) + top, 0, 2 * top)]


def binomial_below(trials: int) -> Below:
    return lambda k: stats.binom.cdf(np.asarray(k) + trials // 2, trials, 0.5)


LAWS = {
    "laplace": (discrete_laplace, laplace_below, [0.3, 1.0, 8.0, 127.5, 128.0, 1000.0, 1e6, 1e8]),
    "gaussian": (discrete_gaussian, gaussian_below, [0.3, 1.0, 8.0, 127.5, 128.0, 1000.0, 1e6, 1e8]),
    "rounded": (rounded_gaussian, rounded_below, [0.15, 0.3, 1.0, 8.0, 127.5, 128.0, 1000.0, 1e6, 1e8]),
    "skellam": (skellam, skellam_below, [0.1, 1.0, 64.0, 40_000.0, 2.0**24, 1e12]),
    "binomial": (centred_binomial, binomial_below, [2, 64, 40_000]),
}
CASES = [(name, parameter) for name, (_, _, parameters) in LAWS.items() for parameter in parameters]


def p_value(drawn: Array, below: Below, deviation: float) -> float:
    """Chi-square over about `CELLS` cells of whole numbers that expect at least ten draws each."""
    reach = 5 * deviation
    edges = np.unique(np.round(np.linspace(-reach, reach, CELLS - 1)).astype(np.int64))
    chances = np.diff(np.concatenate(([0.0], below(edges), [1.0])))
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    kept = chances * len(drawn) >= 10
    chances, counts = np.append(chances[kept], chances[~kept].sum()), np.append(counts[kept], counts[~kept].sum())
    expected = chances * len(drawn)
    if expected[-1] < 5:
        assert counts[-1] <= 40
        expected, counts = expected[:-1], counts[:-1]
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.parametrize(("law", "parameter"), CASES)
def test_a_million_draws_have_the_law(law: str, parameter: float) -> None:
    make, below, _ = LAWS[law]
    sampler = make(parameter)
    drawn = sampler.draw(OperatingSystem(), DRAWS)
    assert drawn.dtype == np.int64
    assert p_value(drawn, below(parameter), sampler.deviation) > RARE


@pytest.mark.parametrize(("law", "parameter"), [(law, p) for law, p in CASES if p > 2])
def test_half_the_noise_is_noticed(law: str, parameter: float) -> None:
    make, below, _ = LAWS[law]
    half = make(parameter / 4 if law == "skellam" else parameter // 8 * 2 if law == "binomial" else parameter / 2)
    assert p_value(half.draw(OperatingSystem(), DRAWS), below(parameter), make(parameter).deviation) < RARE


class Biased:
    """One bit of every 32 is 1 a little more often than it should be."""

    def __init__(self, bit: int) -> None:
        self.bit = bit

    def bytes(self, n: int) -> bytes:
        drawn = np.frombuffer(OperatingSystem().bytes(n), dtype="<u4").copy()
        forced = np.frombuffer(OperatingSystem().bytes(n // 4), dtype=np.uint8) < 4
        drawn[forced] |= np.uint32(1 << self.bit)
        return drawn.tobytes()


@pytest.mark.parametrize(("law", "parameter"), [(law, p) for law, p in CASES if p in (8.0, 64, 1000.0)])
def test_a_biased_bit_is_noticed(law: str, parameter: float) -> None:
    make, below, _ = LAWS[law]
    assert p_value(make(parameter).draw(Biased(31), DRAWS), below(parameter), make(parameter).deviation) < RARE


@pytest.mark.parametrize("make", [discrete_laplace, discrete_gaussian, rounded_gaussian])
@pytest.mark.parametrize("scale", [1e5, 3e8])
def test_places_inside_a_block_are_all_alike(make: Callable[[float], Sampler], scale: float) -> None:
    """A scale is 64 to 128 blocks wide: 64 parts of a block are equally likely, up to what 1e6 draws cannot see."""
    sampler = make(scale)
    assert isinstance(sampler, FromStaircase)
    part = (sampler.draw(OperatingSystem(), DRAWS) >> (sampler.stairs.bits - 6)) & 63
    counts = np.bincount(part, minlength=64)
    assert stats.chisquare(counts).pvalue > RARE
    if make is not discrete_laplace:  # and the low bits, which no cell above sees
        assert stats.chisquare(np.bincount(sampler.draw(OperatingSystem(), DRAWS) & 63, minlength=64)).pvalue > RARE


@pytest.mark.parametrize(("law", "parameter"), CASES)
def test_the_stated_deviation_is_the_ideal_law_s(law: str, parameter: float) -> None:
    make, _, _ = LAWS[law]
    sampler = make(parameter)
    drawn = sampler.draw(OperatingSystem(), DRAWS).astype(np.float64)
    spread = np.sqrt(np.mean(drawn**4) - np.mean(drawn**2) ** 2) / math.sqrt(DRAWS)
    assert abs(np.mean(drawn**2) - sampler.deviation**2) < 5 * spread
    assert abs(drawn.mean()) < 5 * sampler.deviation / math.sqrt(DRAWS)
    assert 0 < sampler.slack < 2.0**-100


def test_deviations_in_closed_form() -> None:
    q = math.exp(-1 / 3)
    assert discrete_laplace(3.0).deviation == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=1e-14)
    assert discrete_laplace(3e5).deviation == pytest.approx(3e5 * math.sqrt(2), rel=1e-10)
    assert discrete_gaussian(5.0).deviation == pytest.approx(5.0, rel=1e-14)
    assert discrete_gaussian(0.4).deviation < 0.4
    for sigma in (5.0, 5000.0):
        assert rounded_gaussian(sigma).deviation == pytest.approx(math.sqrt(sigma**2 + 1 / 12), rel=1e-14)
    assert skellam(9.0).deviation == 3.0
    assert centred_binomial(36).deviation == 3.0


# ---- what one word does not decide ---------------------------------------------------------------------------------------


class Crafted:
    """The given words in turn."""

    def __init__(self, *given: int) -> None:
        self.given = b"".join(word.to_bytes(8, "little") for word in given)

    def bytes(self, n: int) -> bytes:
        taken, self.given = self.given[:n], self.given[n:]
        return taken.ljust(n, b"\0")


def test_a_second_word_settles_what_the_first_does_not() -> None:
    sampler = discrete_gaussian(4.0)
    assert isinstance(sampler, FromTable)
    table = sampler.table
    bounds = [table.bound(i) for i in range(table.outcomes - 1)]
    for i in (3, table.outcomes // 2 - 1, table.outcomes // 2, table.outcomes - 2):
        high, low = divmod(bounds[i], 1 << 64)
        for second in (low - 1, low):
            expected = sum(bound <= (high << 64) + second for bound in bounds) + table.first
            entropy = Crafted(high, 1 << 40, second)
            assert sampler.draw(entropy, 2)[0] == expected
            assert entropy.given == b""
        assert expected == i + 1 + table.first


def test_all_words_at_once_settle_in_turn() -> None:
    sampler = discrete_laplace(2.0)
    assert isinstance(sampler, FromTable)
    table = sampler.table
    middle = [table.outcomes // 2 - 1, table.outcomes // 2]
    first = [int(table.high[i]) for i in middle]
    assert sampler.draw(Crafted(*first, 0, 2**64 - 1), 2).tolist() == [-1, 1]


WIDE = [(discrete_laplace, LAPLACE, 3000.0), (discrete_gaussian, GAUSSIAN, 128.0), (discrete_gaussian, GAUSSIAN, 3e7)]
WIDE += [
    (rounded_gaussian, ROUNDED, 128.0),
    (rounded_gaussian, ROUNDED, 3e7),
    (skellam, POISSON, 2.0**24 + 0.7),
    (skellam, POISSON, 1e16),
]


def wide(make: Callable[[float], Sampler], parameter: float) -> FromStaircase:
    sampler = make(parameter)
    found = sampler.poisson if isinstance(sampler, Difference) else sampler
    assert isinstance(found, FromStaircase)
    return found


@pytest.mark.parametrize(("make", "shape", "parameter"), WIDE)
@pytest.mark.parametrize("offset", [-1, 0])
@pytest.mark.parametrize("part", [-70, 70])
def test_a_height_too_close_is_settled_by_exact_numbers(make, shape: int, parameter: float, offset: int, part: int) -> None:
    """A height one step of 2^-128 above or below the exact weight: doubles see no difference, the exact comparison does."""
    sampler = wide(make, parameter)
    one, rest = sampler.stairs, 64 - sampler.stairs.bits
    block = len(one.stairs) // 2 + part
    place = (1 << one.bits) - 1 if part > 0 else 0
    value = (part << one.bits) + place
    point = math.floor(one.exactly(value, rest + 128)) + 1 + offset
    level, low = divmod(point, 1 << (rest + 128))
    rank = level - int(one.lift[block])
    coin, more = (place << rest) | (low >> 128), low % 2**128
    assert (int(one.bounds[block - 1]) if block else -1) < rank <= one.bounds[block]
    out, where = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int32)
    word, coins = np.array([one.sure + rank], dtype=np.uint32), np.array([coin], dtype=np.uint64)
    tops = (one.sure, one.bounds, one.guide, one.shift, one.lift, one.stairs, one.floors, float(one.height))
    assert climb(word, coins, *tops, shape, one.scale, one.bits, 1, out, where, 0, 0) == (0, 0)
    assert out[0] == 0
    assert sampler._decide(int(word[0]), coin, Crafted(*of_bytes(more))) == (value, offset < 0)
    entropy = Crafted((one.sure + rank) << 32, coin, *of_bytes(more))  # the first of two words is zero, so it is in a slot
    assert (sampler.draw(entropy, 2)[1] == value) == (offset < 0)
    assert entropy.given == b""


def of_bytes(more: int) -> list[int]:
    """Sixteen bytes, the first the highest, as the words that `Crafted` gives."""
    return [int.from_bytes(more.to_bytes(16)[i : i + 8], "little") for i in (0, 8)]


@pytest.mark.parametrize(("make", "shape", "parameter"), WIDE)
def test_stairs_are_never_below_the_law(make, shape: int, parameter: float) -> None:
    """And floors never above it: so a slot, which is below its block's floor, accepts every place."""
    one = wide(make, parameter).stairs
    assert one.shape == shape
    half = len(one.stairs) // 2
    corners = [(block << one.bits) + place for block in range(-half, half, 9) for place in (0, (1 << one.bits) - 1)]
    for value in [*range(-300, 300, 7), *corners]:
        height = one.exactly(value, 0)
        block = (value >> one.bits) + half
        assert one.floors[block] <= height <= int(one.stairs[block])


@pytest.mark.parametrize(("make", "shape", "parameter"), [*WIDE, (discrete_gaussian, GAUSSIAN, 2.0**32)])
def test_every_word_is_one_level_of_one_stair(make, shape: int, parameter: float) -> None:
    """Slots below `sure` and tops above it: together each block's levels, from the lowest to the highest, each once."""
    one = wide(make, parameter).stairs
    size, half = 2**32 // len(one.slots), len(one.stairs) // 2
    assert len(one.slots) << one.bits <= 2**32  # a slot's word leaves a place's bits free
    used = one.sure // size
    assert used * size == one.sure
    in_slots = np.bincount(one.slots[:used].astype(int) + half, minlength=len(one.stairs)) * size
    starts = np.concatenate(([0], one.bounds[:-1].astype(np.int64) + 1))
    assert (starts + one.lift == in_slots).all()  # a top begins where the slots end
    assert (one.bounds.astype(np.int64) + one.lift == one.stairs - 1).all()  # and ends with the stair
    assert (in_slots <= one.floors).all()
    assert one.sure + int(one.bounds[-1]) < 2**32


def test_what_is_added_is_what_is_drawn() -> None:
    """In 64 bits and in 32, over several pieces and with a rest; repeatable entropy makes them the same."""
    size = samplers._PIECE * 3 + 77
    before = np.arange(size)
    for sampler in (rounded_gaussian(1e5), discrete_gaussian(1e4), discrete_laplace(7.0), skellam(40.0), skellam(1e9)):
        drawn = sampler.draw(Seeded(b"k" * 32, unsafe=True), size)
        for dtype in (np.int64, np.int32):
            out = before.astype(dtype)
            sampler.add(Seeded(b"k" * 32, unsafe=True), out)
            assert out.dtype == dtype
            assert (out - before == drawn).all()


def test_in_32_bits_noise_wraps() -> None:
    out, wide_out = np.full(1000, 2**31 - 1, dtype=np.int32), np.full(1000, 2**31 - 1)
    for one in (out, wide_out):
        rounded_gaussian(1e5).add(Seeded(b"k" * 32, unsafe=True), one)
    assert (wide_out >= 2**31).any()
    assert (wide_out.astype(np.int32) == out).all()


def test_values_that_are_refused_are_drawn_anew() -> None:
    """A word beyond every top proposes nothing; the one after it, a word of zeros, is in the first slot."""
    sampler = wide(rounded_gaussian, 3e7)
    one = sampler.stairs
    entropy = Crafted(2**32 - 1 << 32, 0, 0)
    lowest = int(one.slots[0]) << one.bits
    assert one.sure + int(one.bounds[-1]) < 2**32 - 1
    assert sampler.draw(entropy, 2).tolist() == [lowest, lowest]


@mpmath.workdps(80)
@pytest.mark.parametrize(("make", "shape", "parameter"), WIDE)
def test_weights_in_double_precision_and_exact_ones(make, shape: int, parameter: float) -> None:
    """Against mpmath; what doubles get wrong is far below the margin within which they do not decide."""
    stairs = wide(make, parameter).stairs
    half = len(stairs.stairs) // 2
    for value in (0, 1, -1, *(round(x * (half << stairs.bits)) for x in (-1, -0.5, -0.11, 0.03, 0.2, 0.6, 0.99))):
        ideal = ideal_weight(value, shape, stairs.scale)
        exact = mpmath.mpf(str(stairs.exactly(value, 0))) / stairs.height
        assert abs(exact / ideal - 1) < mpmath.mpf(10) ** -40
        assert abs(density(value, shape, stairs.scale) / ideal - 1) < MARGIN / 4


def ideal_weight(value: int, shape: int, scale: float) -> mpmath.mpf:
    x, half = mpmath.mpf(value) / mpmath.mpf(scale), mpmath.mpf(1) / (2 * mpmath.mpf(scale))
    if shape == POISSON:
        rate, centre = mpmath.mpf(scale), math.floor(scale)
        return mpmath.exp(value * mpmath.log(rate) - mpmath.loggamma(centre + value + 1) + mpmath.loggamma(centre + 1))
    if shape == ROUNDED:
        return mpmath.quad(lambda u: mpmath.exp(-(u**2) / 2), [x - half, x + half]) / (2 * half)
    return mpmath.exp(-abs(x) if shape == LAPLACE else -x * x / 2)


# ---- the door --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", [discrete_laplace(3.0), rounded_gaussian(1e5), skellam(4.0), skellam(1e9)])
def test_repeatable_where_the_entropy_is(sampler: Sampler) -> None:
    one, two = (sampler.draw(Seeded(b"k" * 32, unsafe=True), 1000) for _ in range(2))
    assert (one == two).all()
    assert (one != sampler.draw(OperatingSystem(), 1000)).any()


@pytest.mark.parametrize("sampler", [discrete_laplace(3.0), rounded_gaussian(1e5), skellam(1e9)])
def test_no_draws_are_an_empty_answer(sampler: Sampler) -> None:
    assert sampler.draw(OperatingSystem(), 0).shape == (0,)


def test_almost_no_noise_is_none() -> None:
    for make in (discrete_laplace, discrete_gaussian, rounded_gaussian, skellam):
        assert not make(1e-300).draw(OperatingSystem(), 100).any()


@pytest.mark.parametrize("make", [discrete_laplace, discrete_gaussian, rounded_gaussian, skellam])
def test_nonsense_is_refused(make: Callable[[float], Sampler]) -> None:
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(NotAScale):
            make(value)
    with pytest.raises(TooMuchNoise):
        make(1e20)
    with pytest.raises(NotAChance):
        make(3.0).reach(math.nan)


def test_only_even_whole_numbers_of_coins() -> None:
    for trials in (0, -2, 3, 2.0, math.nan, True):
        with pytest.raises(NotAScale):
            centred_binomial(trials)  # type: ignore[arg-type]
    with pytest.raises(TooMuchNoise):
        centred_binomial(samplers.MOST_TRIALS + 2)


@pytest.mark.parametrize(("law", "parameter"), CASES)
def test_a_reach_is_the_smallest(law: str, parameter: float) -> None:
    make, below_of, _ = LAWS[law]
    below = below_of(parameter)
    for chance in (0.3, 1e-3, 1e-9):
        reach = make(parameter).reach(chance)
        if reach < 10**7:  # beyond, one more or less is no difference to double precision
            assert 2 * below(np.array([-reach - 1]))[0] <= chance * (1 + 1e-6)
            assert reach == 0 or law == "skellam" or 2 * below(np.array([-reach]))[0] > chance * (1 - 1e-6)


def test_far_reaches_stay_ordered() -> None:
    for sampler in (discrete_gaussian(20.0), discrete_gaussian(2000.0), discrete_laplace(2000.0)):
        reaches = [sampler.reach(2.0**-bits) for bits in range(1, 115)]
        assert reaches == sorted(reaches)


# ---- sums, and an oracle ------------------------------------------------------------------------------------------------


def test_a_sum_of_skellam_shares_is_skellam() -> None:
    entropy = OperatingSystem()
    total = sum(skellam(16.0).draw(entropy, DRAWS // 4) for _ in range(4))
    assert p_value(total, skellam_below(64.0), 8.0) > RARE


def test_a_sum_of_discrete_gaussian_shares_is_nearly_one() -> None:
    """Five shares of deviation 2: the sum's law differs by about exp(-pi^2 4), far below what these draws see."""
    entropy = OperatingSystem()
    total = sum(discrete_gaussian(2.0).draw(entropy, DRAWS // 4) for _ in range(5))
    assert p_value(total, gaussian_below(math.sqrt(20.0)), math.sqrt(20.0)) > RARE


def theirs(kind: str, scale: float, n: int) -> Array:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    make, distance = (
        (dp.m.make_laplace, dp.l1_distance("i64")) if kind == "laplace" else (dp.m.make_gaussian, dp.l2_distance("f64"))
    )
    return np.array(make(space, distance, scale=scale)([0] * n))


@pytest.mark.parametrize(("kind", "make"), [("laplace", discrete_laplace), ("gaussian", discrete_gaussian)])
@pytest.mark.parametrize("scale", [0.7, 5.0, 1000.0])
def test_opendp_draws_the_same_law(kind: str, make: Callable[[float], Sampler], scale: float) -> None:
    """Two samples in common cells; half the noise fails."""
    oracle = theirs(kind, scale, 30_000)
    ours, half = (make(s).draw(OperatingSystem(), 300_000) for s in (scale, scale / 2))
    assert two_samples(oracle, ours) > RARE
    assert two_samples(oracle, half) < RARE


def two_samples(one: Array, two: Array) -> float:
    edges = np.unique(np.quantile(one, np.linspace(0.01, 0.99, 40)).round())
    counts = np.array([np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (one, two)])
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0]).pvalue)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "parameter"), [("laplace", 300.0), ("gaussian", 300.0), ("rounded", 300.0), ("rounded", 0.4), ("skellam", 90_000.0)]
)
def test_a_hundred_million_draws_have_the_law(law: str, parameter: float) -> None:
    make, below, _ = LAWS[law]
    sampler, counts = make(parameter), np.zeros(10_001, dtype=np.int64)
    for _ in range(20):
        counts += np.bincount(np.clip(sampler.draw(OperatingSystem(), 5_000_000) + 5000, 0, 10_000), minlength=10_001)
    chances = np.diff(np.concatenate(([0.0], below(parameter)(np.arange(-5000, 5000)), [1.0])))
    kept = chances * counts.sum() >= 20
    expected = chances[kept] * counts.sum()
    assert stats.chi2.sf(((counts[kept] - expected) ** 2 / expected).sum(), kept.sum() - 1) > RARE
