"""The noise of one document at one step: a pure function of (seed, step, document key).

It is the model's own noise (dropout, reparametrisation, draws of topics). It is public and protects no privacy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the odd increment of splitmix64
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53
_TURN = 2.0 * math.pi


@njit(cache=True, inline="always")
def mix(x: np.uint64) -> np.uint64:
    """splitmix64's finaliser: every input bit reaches every output bit."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@njit(cache=True, inline="always")
def uniform(start: np.uint64, index: int) -> float:
    """The random number with that index in a document's stream, strictly between 0 and 1."""
    return ((mix(start + np.uint64(index + 1) * _GOLDEN) >> np.uint64(11)) + 0.5) * _TO_UNIT


@njit(cache=True)
def _fill_normals(starts: Array, out: Array) -> None:
    width = out.shape[1]
    for i in range(out.shape[0]):
        for j in range(0, width, 2):  # Box and Muller: two uniforms make two independent normals
            radius = math.sqrt(-2.0 * math.log(uniform(starts[i], j)))
            angle = _TURN * uniform(starts[i], j + 1)
            out[i, j] = radius * math.cos(angle)
            if j + 1 < width:
                out[i, j + 1] = radius * math.sin(angle)


def starts_of(seed: int, step: int, keys: Array, stream: int) -> Array:
    """Where each document's stream begins. Seed, step and stream are mixed in turn, so that none cancels another."""
    state = np.uint64(0)
    for word in (seed, step, stream):
        state = np.uint64(_mix_word(np.uint64(int(state) ^ (word & 0xFFFFFFFFFFFFFFFF))))
    return _mix_keys(np.ascontiguousarray(keys, dtype=np.uint64), state)


@njit(cache=True)
def _mix_keys(keys: Array, state: np.uint64) -> Array:
    out = np.empty_like(keys)
    for i in range(len(keys)):
        out[i] = mix(mix(keys[i] + _GOLDEN) ^ state)
    return out


@njit(cache=True)
def _mix_word(word: np.uint64) -> np.uint64:
    return mix(word + _GOLDEN)


@njit(cache=True)
def _fill_survival(starts: Array, dropout: float, out: Array) -> None:
    kept = out.dtype.type(1.0 / (1.0 - dropout))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = kept if uniform(starts[i], j) >= dropout else out.dtype.type(0)


def normals(seed: int, step: int, keys: Array, stream: int, width: int, dtype: Any = np.float64) -> Array:
    """One row of `width` standard normals per document key; streams are independent."""
    out = np.empty((len(keys), width), dtype)
    _fill_normals(starts_of(seed, step, keys, stream), out)
    return out


def survival(seed: int, step: int, keys: Array, stream: int, width: int, dropout: float, dtype: Any = np.float64) -> Array:
    """Inverted dropout: 0 with probability `dropout`, else 1 / (1 - dropout)."""
    out = np.empty((len(keys), width), dtype)
    _fill_survival(starts_of(seed, step, keys, stream), dropout, out)
    return out
