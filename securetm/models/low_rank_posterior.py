"""What a few features explain of many normal vectors behind normal noise: posterior means, and how probable the vectors are.

Vector k has a prior of mean 0 and covariance D (F F' + w I) D, D being the diagonal matrix of its scales; noise is independent,
with a variance of its own in each coordinate. By Woodbury's identity a vector costs its length times the square of the number
of features, and no matrix of length x length exists. Every sum has a fixed order. It knows neither topics nor privacy.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from securetm.contracts import Array


def common_means(found: Array, scale: Array, noise: Array, features: Array, own: float) -> Array:
    """The posterior mean of what the features explain of each row of `found`; `noise` are the variances of its coordinates."""
    out = np.empty(found.shape)
    _solve_all(*_ready(found, scale, noise, features), own, out)
    return out


def log_evidence(found: Array, scale: Array, noise: Array, features: Array, own: float) -> float:
    """The log density of all rows under prior and noise together, up to a constant."""
    return float(_solve_all(*_ready(found, scale, noise, features), own, np.empty(found.shape)))


def _ready(found: Array, scale: Array, noise: Array, features: Array) -> tuple[Array, Array, Array, Array]:
    ready = [np.ascontiguousarray(one, dtype=np.float64) for one in (found, scale, noise, features)]
    return ready[0], ready[1], ready[2], ready[3]


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_all(found: Array, scale: Array, noise: Array, features: Array, own: float, out: Array) -> float:
    total = 0.0
    for k in range(len(found)):
        total += _solve(found[k], scale[k], noise, features, own, out[k])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(found: Array, scale: Array, noise: Array, features: Array, own: float, out: Array) -> float:
    """Sets `out` to the posterior mean of one row's common part, D F times its coefficients. Returns the row's log evidence."""
    words, rank = features.shape
    inner, beside, back = np.zeros((rank, rank)), np.zeros(rank), np.empty(rank)
    for i in range(rank):
        inner[i, i] = 1.0
    squares, logs = 0.0, 0.0
    for v in range(words):
        alone = scale[v] * scale[v] * own + noise[v]
        each, heavy = scale[v] * found[v] / alone, scale[v] * scale[v] / alone
        squares += found[v] * found[v] / alone
        logs += math.log(alone)
        row = features[v]
        for i in range(rank):
            beside[i] += each * row[i]
            factor = heavy * row[i]
            for j in range(i + 1):
                inner[i, j] += factor * row[j]
    logs += _factorise(inner)
    back[:] = beside
    _solve_triangles(inner, back)
    for v in range(words):
        row, common = features[v], 0.0
        for i in range(rank):
            common += row[i] * back[i]
        out[v] = scale[v] * common
    for i in range(rank):
        squares -= beside[i] * back[i]
    return -0.5 * (squares + logs)


@njit(cache=True, nogil=True, error_model="numpy")
def _factorise(matrix: Array) -> float:
    """Replaces the lower triangle by its Cholesky factor. Returns the logarithm of the determinant."""
    logs = 0.0
    for i in range(len(matrix)):
        for j in range(i + 1):
            left = matrix[i, j]
            for n in range(j):
                left -= matrix[i, n] * matrix[j, n]
            matrix[i, j] = math.sqrt(left) if i == j else left / matrix[j, j]
        logs += 2.0 * math.log(matrix[i, i])
    return logs


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_triangles(factor: Array, right: Array) -> None:
    """Replaces the right side by the solution, given the Cholesky factor."""
    rank = len(right)
    for i in range(rank):
        for n in range(i):
            right[i] -= factor[i, n] * right[n]
        right[i] /= factor[i, i]
    for i in range(rank - 1, -1, -1):
        for n in range(i + 1, rank):
            right[i] -= factor[n, i] * right[n]
        right[i] /= factor[i, i]
