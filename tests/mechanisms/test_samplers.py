"""How a sampler draws: undecided draws are settled right, exact numbers bear out the fast ones, and nonsense is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from securetm.entropy import OperatingSystem, Seeded
from securetm.errors import BadSetting
from securetm.mechanisms import samplers
from securetm.mechanisms.noise_laws import GAUSSIAN, LAPLACE, MARGIN, POISSON, ROUNDED, climb, density
from securetm.mechanisms.samplers import (
    DifferenceSampler,
    Sampler,
    StaircaseSampler,
    TableSampler,
    discrete_gaussian,
    discrete_laplace,
    rounded_gaussian,
    skellam,
)

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
    assert isinstance(sampler, TableSampler)
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
    assert isinstance(sampler, TableSampler)
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


def wide(make: Callable[[float], Sampler], parameter: float) -> StaircaseSampler:
    sampler = make(parameter)
    found = sampler.poisson if isinstance(sampler, DifferenceSampler) else sampler
    assert isinstance(found, StaircaseSampler)
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
    assert climb(word, coins, tops, (shape, one.scale, one.bits), 1, out, where, 0, 0) == (0, 0)
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


def test_almost_no_noise_is_none() -> None:
    for make in (discrete_laplace, discrete_gaussian, rounded_gaussian, skellam):
        assert not make(1e-300).draw(OperatingSystem(), 100).any()


@pytest.mark.parametrize("make", [discrete_laplace, discrete_gaussian, rounded_gaussian, skellam])
def test_nonsense_is_refused(make: Callable[[float], Sampler]) -> None:
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(BadSetting):
            make(value)
    with pytest.raises(BadSetting):
        make(1e20)
    with pytest.raises(BadSetting):
        make(3.0).reach(math.nan)


def test_wide_skellam_noise_is_one_draw_less_another() -> None:
    """Their sum would have the same spread, and no test of the law would tell it from the difference."""
    sampler, streams = skellam(2.0**25), [Seeded(bytes(32), unsafe=True) for _ in range(2)]
    one, two = (sampler.poisson.draw(streams[0], 1000) for _ in range(2))  # type: ignore[attr-defined]
    assert np.array_equal(sampler.draw(streams[1], 1000), one - two)


def test_what_a_table_rounds_counts_as_failure() -> None:
    table = discrete_gaussian(100.0)
    assert table.failure_probability == pytest.approx(2.0**-120 + table.table.outcomes * 2.0**-127, rel=1e-9, abs=0)  # type: ignore[attr-defined]
