"""Adam and plain SGD as single passes over flat vectors. They know weights, a mean gradient and their own moments, no model.

The holder of the model's whole state runs them: the coordinator, `fit`, or parties where these open the total.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from securetm.contracts import Array, State
from securetm.errors import NotFound

ADAM, SGD = "adam", "sgd"
KNOWN = (ADAM, SGD)
BETA2 = 0.999
TINY = 1e-8


# Python's division raises on zero, and that check would prevent vectorisation: hence numpy's error model.
@njit(cache=True, fastmath={"nsz", "contract", "reassoc"}, error_model="numpy")
def _adam(weights: Array, gradient: Array, scale: Any, first: Array, second: Array, rates: Any) -> None:
    beta1, keep1, beta2, keep2, rate, spread, tiny = rates
    for i in range(len(weights)):
        g = gradient[i] * scale
        first[i] = beta1 * first[i] + keep1 * g
        second[i] = beta2 * second[i] + keep2 * g * g
        weights[i] -= rate * first[i] / (np.sqrt(second[i]) * spread + tiny)


def moments(optimiser: str, weights: Array) -> dict[str, Array]:
    """The optimiser's moments at the start."""
    if optimiser not in KNOWN:
        raise NotFound("optimiser", optimiser, KNOWN)
    return {"first": np.zeros_like(weights), "second": np.zeros_like(weights)} if optimiser == ADAM else {}


def step(
    weights: Array,
    gradient: Array,
    count: float,
    memory: State,
    number: int,
    rate: float,
    beta1: float,
    in_place: bool = False,
) -> tuple[Array, dict[str, Array]]:
    """Weights and moments after step `number` (1, 2, ...) along gradient / count. SGD has no moments."""
    if not memory:
        return (weights - rate / count * gradient).astype(weights.dtype, copy=False), {}  # an opened sum may be wider
    first, second = memory["first"], memory["second"]
    if not in_place:
        weights, first, second = weights.copy(), first.copy(), second.copy()
    real = weights.dtype.type
    corrected = rate / (1.0 - beta1**number)
    spread = 1.0 / math.sqrt(1.0 - BETA2**number)
    rates = tuple(real(x) for x in (beta1, 1.0 - beta1, BETA2, 1.0 - BETA2, corrected, spread, TINY))
    _adam(weights, np.ascontiguousarray(gradient, dtype=weights.dtype), real(1.0 / count), first, second, rates)
    return weights, {"first": first, "second": second}
