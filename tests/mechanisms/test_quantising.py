"""The grid: bounded, rounded as promised, and silent about what it clamped."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.contracts import Answer, Block, Cohort, Desk, Domain, Noised, Terms
from securetm.entropy import OperatingSystem
from securetm.errors import BadSetting, NoiseBeforeRounding, NotFinite
from securetm.mechanisms.quantising import CLAMPED, Clamped, FixedPoint
from tests.laws.mechanism_laws import EmptyCupboard

COHORT = Cohort(b"r" * 32, 0, ("a", "b", "c", "d", "e"))
REAL = Terms((Block("values", (1000,)),))


def desk() -> Desk:
    return Desk(COHORT, OperatingSystem(), EmptyCupboard({}))


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize("bits", [32, 64])
def test_a_sum_comes_back_within_the_grid(rounding: str, bits: int) -> None:
    mechanism = FixedPoint(span=8.0, wide_span=8.0, rounding=rounding)
    terms = mechanism.admit(Terms(REAL.layout, bits=bits), COHORT)
    values = np.random.default_rng(0).uniform(-8, 8, 1000)
    whole = mechanism.on_vector(values, terms, desk())
    assert whole.dtype == (np.int32 if bits == 32 else np.int64)
    back = mechanism.on_answer(Answer({"values": whole}), terms, desk()).total
    assert back is not None
    assert np.abs(back["values"] - values).max() <= terms.grid * (0.5000001 if rounding == "nearest" else 1)
    assert 5 * np.abs(whole).max() < 2 ** (bits - 1)  # five parties' sum fits the ring


def test_stochastic_rounding_is_right_on_average() -> None:
    mechanism = FixedPoint(span=1.0, rounding="stochastic")
    terms = mechanism.admit(REAL, COHORT)
    draws = mechanism.on_vector(np.full(200_000, 0.3 * terms.grid), terms, desk())
    assert set(np.unique(draws)) == {0, 1}
    assert abs(draws.mean() - 0.3) < 0.006  # six deviations


def test_nearest_rounding_gives_the_same_bytes_again() -> None:
    mechanism = FixedPoint()
    terms = mechanism.admit(REAL, COHORT)
    values = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    assert np.array_equal(mechanism.on_vector(values, terms, desk()), mechanism.on_vector(values, terms, desk()))


def test_what_is_out_of_range_is_clamped_and_only_counted_at_the_party() -> None:
    mechanism, here = FixedPoint(span=1.0), desk()
    terms = mechanism.admit(REAL, COHORT)
    whole = mechanism.on_vector(np.array([5.0, -5.0, 0.5]), terms, here)
    assert whole.tolist()[:2] == [terms.reach, -terms.reach]
    assert int.from_bytes(here.cupboard.get(CLAMPED) or b"") == 2
    mechanism.on_vector(np.array([9.0]), terms, here)
    assert int.from_bytes(here.cupboard.get(CLAMPED) or b"") == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mechanism", [FixedPoint(), Clamped()])
def test_values_that_are_not_finite_are_an_error_before_anything_is_sent(bad: float, mechanism: Clamped) -> None:
    with pytest.raises(NotFinite, match="1 values"):
        mechanism.on_vector(np.array([0.0, bad]), mechanism.admit(REAL, COHORT), desk())


def test_whole_numbers_stay_as_they_are_up_to_what_the_ring_can_sum() -> None:
    mechanism = FixedPoint()
    terms = mechanism.admit(Terms(REAL.layout, domain=Domain.INTEGER, bits=32), COHORT)
    whole = mechanism.on_vector(np.array([3, -7, 2**40]), terms, desk())
    assert whole.tolist() == [3, -7, (2**31 - 1) // 5]
    assert terms.grid == 0.0


def test_noise_may_not_come_before_rounding() -> None:
    with pytest.raises(NoiseBeforeRounding):
        FixedPoint().admit(Terms(REAL.layout, noised=Noised.SHARE), COHORT)


@pytest.mark.parametrize("setting", [{"span": 0.0}, {"wide_span": float("inf")}, {"rounding": "up"}, {"ring": 16}])
def test_settings_are_checked(setting: dict[str, object]) -> None:
    with pytest.raises(BadSetting):
        FixedPoint(**setting)  # type: ignore[arg-type]
