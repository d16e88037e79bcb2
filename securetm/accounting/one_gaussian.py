"""The exact privacy curve of Gaussian answers, however many: together they are one. No grid, and no other noise.

delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), mu = 1 / noise multiplier (Balle and Wang 2018).
"""

from __future__ import annotations

import math

from dp_accounting.dp_event import GaussianDpEvent
from scipy.special import log_ndtr, ndtr

from securetm.accounting.spends import Leaves

_ROUNDING = (
    1e-9  # relative, of both terms: a thousand times what their floating-point arithmetic can be wrong at epsilon 10,000
)
_PRECISION = 1e-6  # of an epsilon, which is rounded upwards


def sensitivity_of(leaves: Leaves) -> float:
    """The largest change of all answers, in standard deviations of their noise; 0 where one is not Gaussian."""
    if not all(isinstance(event, GaussianDpEvent) and event.noise_multiplier > 0 for event, _ in leaves):
        return 0.0
    return math.sqrt(math.fsum(count / event.noise_multiplier**2 for event, count in leaves))


def delta_of(mu: float, epsilon: float) -> float:
    """The least delta at this epsilon, rounded upwards."""
    first = float(ndtr(mu / 2 - epsilon / mu))
    second = math.exp(min(epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)), 0.0))
    return min(1.0, max(first - second, 0.0) + _ROUNDING * first)


def epsilon_of(mu: float, delta: float) -> float:
    """The least epsilon at this delta, rounded upwards; infinity where there is none."""
    if delta <= 0:
        return math.inf
    low, high = 0.0, 1.0
    if delta_of(mu, low) <= delta:
        return low
    while delta_of(mu, high) > delta:
        low, high = high, 2 * high
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(mu, middle) <= delta else (middle, high)
    return high
