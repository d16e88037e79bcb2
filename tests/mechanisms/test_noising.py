"""Noise that is added to a party's vector: in its own place where its type holds the reach, wider where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from securetm.contracts import Array, Block, Cohort, Domain, Terms
from securetm.entropy import Seeded
from securetm.mechanisms.clipping import Clip
from securetm.mechanisms.gaussian_noise import GaussianNoise
from securetm.mechanisms.laplace_noise import DiscreteLaplaceNoise
from securetm.mechanisms.noise_shares import NoiseShares
from securetm.mechanisms.noising import CUT, multiplier_of, noised
from securetm.mechanisms.samplers import rounded_gaussian
from tests.mechanisms.noisy import BOUNDED

NOISE = rounded_gaussian(1e8)
FITS, EXCEEDS = replace(BOUNDED, reach=2.0**31 - 1), replace(BOUNDED, reach=2.0**31)


def repeated() -> Seeded:
    return Seeded(b"k" * 32, unsafe=True)


@pytest.mark.parametrize("terms", [FITS, EXCEEDS])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_in_its_own_place_where_it_fits(dtype: type, terms: Terms) -> None:
    same = dtype is np.int64 or terms is FITS
    vector = np.arange(1000, dtype=dtype)
    out = noised(vector, NOISE, terms, repeated())
    assert (out is vector) == same
    assert out.dtype == (dtype if same else np.int64)
    assert (out - np.arange(1000) == NOISE.draw(repeated(), 1000)).all()


def test_what_must_not_be_written_is_left_alone() -> None:
    locked, apart = np.arange(1000), np.arange(2000)[::2]
    locked.flags.writeable = False
    for vector in (locked, apart):
        before: Array = vector.copy()
        out = noised(vector, NOISE, FITS, repeated())
        assert (vector == before).all()
        assert (out - before == NOISE.draw(repeated(), 1000)).all()


TERMS = Terms((Block("all", (4,)),), domain=Domain.INTEGER, l1=3.0, l2=2.0, linf=1.0, reach=1.0)
FIVE = Cohort(b"", 0, ("a", "b", "c", "d", "e"), threshold=5)


def test_a_question_s_own_noise_goes_before_the_mechanism_s() -> None:
    assert multiplier_of(GaussianNoise(2.0), TERMS) == 2.0
    assert multiplier_of(GaussianNoise(2.0), replace(TERMS, multiplier=5.0)) == 5.0


def test_each_noise_follows_its_own_bound() -> None:
    assert (DiscreteLaplaceNoise(1.0).bound(TERMS), GaussianNoise(1.0).bound(TERMS)) == (3.0, 2.0)


def test_noise_is_added_once_and_fails_in_every_coordinate_of_every_party() -> None:
    noise = GaussianNoise(100.0)
    after = noise.admit(TERMS, FIVE)
    assert (noise.adds(TERMS), noise.adds(after)) == (False, True)
    assert noise.failure_probability(after, FIVE) == 4 * noise.noise(after, FIVE).failure_probability
    shares = NoiseShares(100.0, "skellam")
    assert shares.failure_probability(shares.admit(TERMS, FIVE), FIVE) >= 4 * 5 * CUT


def test_a_looser_clip_widens_no_bound() -> None:
    assert Clip(5.0).admit(replace(TERMS, domain=Domain.REAL), FIVE).l2 == 2.0
