"""Posterior means of numbers around known centres behind normal noise, where some lie near their centre and some far from it.

The prior of each number is a mixture of normal variables around its centre, from narrow to wide in units of its own scale. The
mixture's weights make the noised numbers most probable (Stephens 2017). Every sum has a fixed order. It knows neither topics
nor privacy.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.mixture_of_sizes import weigh

_SPREADS = np.exp(np.linspace(math.log(1e-3), math.log(30.0), 14))  # variances, as multiples of the scale's square
_PASSES = 60
_FITTED = 20_000  # the weights are fitted to so many numbers


def means_around(found: Array, centres: Array, scale: Array, noise: Array) -> Array:
    """The posterior mean of each number; `noise` are variances, and all have the shape of `found`."""
    squares = np.square(scale).ravel()
    apart, variances = (found - centres).ravel(), np.ascontiguousarray(noise).ravel()
    some = slice(None, None, -(-len(apart) // _FITTED))
    out = np.empty(len(apart))
    weights = _fitted(apart[some].copy(), squares[some].copy(), variances[some].copy(), _SPREADS, _PASSES)
    _set_means(apart, squares, variances, _SPREADS, weights, out)
    around: Array = centres + out.reshape(found.shape)
    return around


@njit(cache=True, nogil=True, error_model="numpy")
def _chances(apart: float, square: float, noise: float, spreads: Array, out: Array) -> None:
    """The density under each part of the mixture, the largest 1."""
    most = -math.inf
    for g in range(len(spreads)):
        both = square * spreads[g] + noise
        out[g] = -0.5 * (apart * apart / both + math.log(both))
        most = max(most, out[g])
    for g in range(len(spreads)):
        out[g] = math.exp(out[g] - most)


@njit(cache=True, nogil=True, error_model="numpy")
def _fitted(apart: Array, squares: Array, noise: Array, spreads: Array, passes: int) -> Array:
    """The weights of the parts after so many steps of expectation maximisation."""
    chances, weights = np.empty((len(apart), len(spreads))), np.full(len(spreads), 1.0 / len(spreads))
    for n in range(len(apart)):
        _chances(apart[n], squares[n], noise[n], spreads, chances[n])
    for _ in range(passes):
        weigh(chances, weights)
    return weights


@njit(cache=True, nogil=True, error_model="numpy")
def _set_means(apart: Array, squares: Array, noise: Array, spreads: Array, weights: Array, out: Array) -> None:
    chances = np.empty(len(spreads))
    for n in range(len(apart)):
        _chances(apart[n], squares[n], noise[n], spreads, chances)
        total, kept = 0.0, 0.0
        for g in range(len(spreads)):
            chance, variance = chances[g] * weights[g], squares[n] * spreads[g]
            total += chance
            kept += chance * variance / (variance + noise[n])
        out[n] = apart[n] * kept / total
