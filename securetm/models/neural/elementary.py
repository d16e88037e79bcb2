"""Exponentials and logarithms made of single additions and multiplications: the same bits at every place of an array.

A library computes the numbers that fill a vector register with other code than those left over at an array's end, and the two
differ in their last bit. Here both use the same operations, each rounded as IEEE 754 says. Numbers that are not finite give
such numbers, or the largest ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

_LOG2_E = 1.4426950408889634
_HIGH, _LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2 as a sum; the first part ends with zero bits
_WHOLE = 6755399441055744.0  # 1.5 x 2^52: adding it rounds a number to a whole one
_WHOLE32 = np.float32(12582912.0)  # 1.5 x 2^23


def _exp64(x: Any) -> Any:
    """exp as 2^n times a Taylor polynomial on -log(2) / 2 to log(2) / 2."""
    x = -708.0 if x < -708.0 else x
    x = 709.0 if x > 709.0 else x
    shifted = x * _LOG2_E + _WHOLE
    n = shifted - _WHOLE
    r = (x - n * _HIGH) - n * _LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 1.0 / 2.0
    p = p * r + 1.0
    p = p * r + 1.0
    power = (np.float64(shifted).view(np.int64) - np.float64(_WHOLE).view(np.int64) + 1023) << 52
    return p * np.int64(power).view(np.float64)


def _exp32(x: Any) -> Any:
    """exp of a float32 to one unit in the last place (Cephes' polynomial)."""
    x = np.float32(-87.0) if x < np.float32(-87.0) else x
    x = np.float32(88.0) if x > np.float32(88.0) else x
    shifted = x * np.float32(_LOG2_E) + _WHOLE32
    n = shifted - _WHOLE32
    r = x - n * np.float32(0.693359375) - n * np.float32(-2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    y = p * r * r + r + np.float32(1)
    power = (np.float32(shifted).view(np.int32) - np.float32(_WHOLE32).view(np.int32) + np.int32(127)) << np.int32(23)
    return y * np.int32(power).view(np.float32)


def exp(x: Any) -> Any:
    """exp in the precision of its argument; only compiled code can call it."""
    raise NotImplementedError


@overload(exp, jit_options={"error_model": "numpy"})
def _exp_of(x: Any) -> Any:
    return _exp32 if x == types.float32 else _exp64


@njit(cache=True, error_model="numpy")
def _log_ratio(s: float) -> float:
    """log((1 + s) / (1 - s)) for s of at most a third."""
    square = s * s
    p = 2.0 / 35.0
    p = p * square + 2.0 / 33.0
    p = p * square + 2.0 / 31.0
    p = p * square + 2.0 / 29.0
    p = p * square + 2.0 / 27.0
    p = p * square + 2.0 / 25.0
    p = p * square + 2.0 / 23.0
    p = p * square + 2.0 / 21.0
    p = p * square + 2.0 / 19.0
    p = p * square + 2.0 / 17.0
    p = p * square + 2.0 / 15.0
    p = p * square + 2.0 / 13.0
    p = p * square + 2.0 / 11.0
    p = p * square + 2.0 / 9.0
    p = p * square + 2.0 / 7.0
    p = p * square + 2.0 / 5.0
    p = p * square + 2.0 / 3.0
    p = p * square + 2.0
    return s * p


@njit(cache=True, error_model="numpy")
def log1p_of_share(e: float) -> float:
    """log(1 + e) for e from 0 to 1."""
    return _log_ratio(e / (2.0 + e))


@njit(cache=True, error_model="numpy")
def log(x: float) -> float:
    """The logarithm of an ordinary number above 0."""
    bits = np.float64(x).view(np.int64)
    n = (bits >> 52) - 1023
    m = np.int64((bits & 0xFFFFFFFFFFFFF) | (1023 << 52)).view(np.float64)
    if m > 1.4142135623730951:
        m, n = m * 0.5, n + 1
    return n * 0.6931471805599453 + _log_ratio((m - 1.0) / (m + 1.0))
