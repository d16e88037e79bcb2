"""The grid: bounded, rounded as promised, and silent about what it clamped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from securetm.contracts import Answer, Block, Cohort, Domain, Mechanism, Noised, RoundContext, Terms, Unit
from securetm.entropy import OperatingSystem
from securetm.errors import BadSetting, Mismatch
from securetm.mechanisms.clipping import BoundedCounts, Clip
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.quantising import CLAMPED, NO_NUMBERS, Clamped, FixedPoint
from securetm.testing.few_documents import EmptyStore
from securetm.testing.mechanism_laws import InTurn, MechanismLaws, integer_terms

COHORT = Cohort(b"r" * 32, 0, ("a", "b", "c", "d", "e"))
REAL = Terms((Block("values", (1000,)),))


def context() -> RoundContext:
    return RoundContext(COHORT, OperatingSystem(), EmptyStore({}))


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize("bits", [32, 64])
def test_a_sum_comes_back_within_the_grid(rounding: str, bits: int) -> None:
    mechanism = FixedPoint(span=8.0, wide_span=8.0, rounding=rounding)
    terms = mechanism.admit(Terms(REAL.layout, bits=bits), COHORT)
    values = np.random.default_rng(0).uniform(-8, 8, 1000)
    whole = mechanism.on_vector(values, terms, context())
    assert whole.dtype == (np.int32 if bits == 32 else np.int64)
    back = mechanism.on_answer(Answer({"values": whole}), terms, context()).total
    assert back is not None
    assert np.abs(back["values"] - values).max() <= terms.grid * (0.5000001 if rounding == "nearest" else 1)
    assert 5 * np.abs(whole).max() < 2 ** (bits - 1)  # five parties' sum fits the ring


def test_stochastic_rounding_is_right_on_average() -> None:
    mechanism = FixedPoint(span=1.0, rounding="stochastic")
    terms = mechanism.admit(REAL, COHORT)
    draws = mechanism.on_vector(np.full(200_000, 0.3 * terms.grid), terms, context())
    assert set(np.unique(draws)) == {0, 1}
    assert abs(draws.mean() - 0.3) < 0.0072  # seven deviations


def test_what_is_out_of_range_is_clamped_and_only_counted_at_the_party() -> None:
    mechanism, here = FixedPoint(span=1.0), context()
    terms = mechanism.admit(REAL, COHORT)
    whole = mechanism.on_vector(np.array([5.0, -5.0, 0.5]), terms, here)
    assert whole.tolist()[:2] == [terms.reach, -terms.reach]
    assert int.from_bytes(here.store.get(CLAMPED) or b"") == 2
    mechanism.on_vector(np.array([9.0]), terms, here)
    assert int.from_bytes(here.store.get(CLAMPED) or b"") == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mechanism", [FixedPoint(), Clamped()])
def test_values_that_are_not_finite_count_as_nothing_and_only_at_the_party(bad: float, mechanism: Clamped) -> None:
    here = context()
    sent = mechanism.on_vector(np.array([0.0, bad]), mechanism.admit(REAL, COHORT), here)
    assert sent.tolist() == [0, 0]
    assert int.from_bytes(here.store.get(NO_NUMBERS) or b"") == 1


def test_whole_numbers_stay_as_they_are_up_to_what_the_ring_can_sum() -> None:
    mechanism = FixedPoint()
    terms = mechanism.admit(Terms(REAL.layout, domain=Domain.INTEGER, bits=32), COHORT)
    whole = mechanism.on_vector(np.array([3, -7, 2**40]), terms, context())
    assert whole.tolist() == [3, -7, (2**31 - 1) // 5]
    assert terms.grid == 0.0


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64])
def test_whole_numbers_beyond_the_reach_are_clamped_on_both_sides_and_counted(bits: int, kind: type[np.generic]) -> None:
    here = context()
    terms = replace(Terms(REAL.layout, domain=Domain.INTEGER, bits=bits), reach=9.0)
    whole = FixedPoint().on_vector(np.array([9, -9, 10, -11, 0], kind), terms, here)
    assert whole.tolist() == [9, -9, 9, -9, 0]
    assert whole.dtype == (np.int32 if bits == 32 else np.int64)
    assert int.from_bytes(here.store.get(CLAMPED) or b"") == 2


@pytest.mark.parametrize(
    "setting",
    [
        {"span": 0.0},
        {"wide_span": float("inf")},
        {"rounding": "up"},
        {"ring": 16},
        {"headroom": 1.0},
        {"headroom": -0.1},
        {"steps": 0.5},
        {"crowd": 0},
    ],
)
def test_settings_are_checked(setting: dict[str, object]) -> None:
    with pytest.raises(BadSetting):
        FixedPoint(**setting)  # type: ignore[arg-type]


# ---- under a clip ------------------------------------------------------------------------------------------------------


class TestClipThenGrid(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return InTurn((Clip(0.8), FixedPoint(steps=4)))


class TestClipThenGridByCoins(MechanismLaws):
    """Coins of its own for each sum: a coordinate then moves by less than two steps more than the row does."""

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return InTurn((Clip(0.8), FixedPoint(steps=4, rounding="stochastic")))


class TestGridOfCounts(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return InTurn((BoundedCounts(5), FixedPoint(headroom=0.5)))

    @pytest.fixture
    def before(self) -> Terms:
        return integer_terms()


def clipped(**changes: Any) -> Terms:
    return Clip(2.0).admit(replace(REAL, **changes), COHORT)


def test_the_grid_follows_the_clip_and_counts_its_own_rounding() -> None:
    terms = FixedPoint().admit(clipped(), COHORT)
    assert terms.domain is Domain.INTEGER
    assert terms.grid == pytest.approx(2.0 / (256 * 1000**0.5))
    assert terms.l2 == pytest.approx((256 + 2) * 1000**0.5)
    assert terms.linf == pytest.approx(256 * 1000**0.5 + 2)
    assert terms.l1 == pytest.approx(256 * 1000 + 2 * 1000)
    assert terms.reach * len(COHORT.members) < 2**31


def test_rounding_takes_less_than_a_percent_of_the_noise() -> None:
    terms = FixedPoint().admit(clipped(layout=(Block("values", (1_000_000,)),)), COHORT)
    assert terms.l2 * terms.grid / 2.0 < 1.01
    assert terms.reach * terms.grid > 256 * 2.0  # and a batch of 256 rows is never clamped, however it points


def test_a_ring_too_narrow_for_the_grid_is_refused_with_what_to_change() -> None:
    wide = clipped(layout=(Block("values", (1_000_000,)),))
    with pytest.raises(Mismatch, match="32 rows of this question") as refused:
        FixedPoint(steps=1e5).admit(wide, COHORT)
    assert "steps" in refused.value.advice()
    assert FixedPoint(steps=1e5, ring=64).admit(wide, COHORT).bits == 64
    assert FixedPoint(steps=1e4, crowd=1).admit(wide, COHORT).bits == 32
    assert FixedPoint(steps=1e4).admit(replace(wide, unit=Unit.PARTY), COHORT).bits == 32


def test_whole_noise_on_whole_numbers_passes_and_the_rest_is_refused() -> None:
    whole = Terms(REAL.layout, domain=Domain.INTEGER, noised=Noised.WHOLE, deviation=2.0)
    admitted = FixedPoint().admit(whole, COHORT)
    assert (admitted.noised, admitted.deviation, admitted.grid) == (Noised.WHOLE, 2.0, 0.0)
    for terms in (replace(whole, domain=Domain.REAL), replace(whole, noised=Noised.SHARE)):
        with pytest.raises(Mismatch, match="a share of noise must be added"):
            FixedPoint().admit(terms, COHORT)


def test_a_second_grid_is_refused() -> None:
    """It would scale the sum twice, while its bounds say once."""
    terms = FixedPoint().admit(Clip(1.0).admit(REAL, COHORT), COHORT)
    with pytest.raises(BadSetting, match="behind fixed_point"):
        FixedPoint().admit(terms, COHORT)


def test_counts_bound_no_rows_behind_the_grid() -> None:
    """The vector is of whole numbers there, and the rows are still real: they have no bound, and noise is refused."""
    terms = BoundedCounts(most=1).admit(FixedPoint().admit(REAL, COHORT), COHORT)
    assert terms.l2 == float("inf")
    with pytest.raises(Mismatch, match="has no bound to measure its noise"):
        GaussianNoise(noise_multiplier=1.0).admit(terms, COHORT)
