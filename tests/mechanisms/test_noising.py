"""Noise that is added to a party's vector: in its own place where its type holds the reach, wider where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from securetm.contracts import Array, Terms
from securetm.entropy import Seeded
from securetm.mechanisms.noising import noised
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
