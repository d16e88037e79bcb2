"""What needs neither divergences nor a grid: pure epsilons, which hold at delta 0 and add up, and Gaussians, which are one.

delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), mu = 1 / noise multiplier (Balle and Wang 2018).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from securetm.accounting.spends import Leaves
from securetm.extras import later

if TYPE_CHECKING:
    from dp_accounting import DpEvent

events, special = later("dp_accounting.dp_event"), later("scipy.special")

_ROUNDING = 1e-9  # relative, of both terms: a thousand times what their arithmetic can be wrong at epsilon 10,000
_PRECISION = 1e-6  # of an epsilon, which is rounded upwards


def pure_epsilon(event: DpEvent) -> float:
    """The largest privacy loss of one answer; infinity where it has none."""
    if isinstance(event, events.LaplaceDpEvent):
        return 1 / float(event.noise_multiplier)
    if isinstance(event, events.DiscreteLaplaceDpEvent):
        return float(event.noise_parameter) * int(event.sensitivity)
    if isinstance(event, events.RandomizedResponseDpEvent):  # replacing a value, which bounds adding or removing one
        return math.log1p(event.num_buckets * (1 - event.noise_parameter) / event.noise_parameter)
    if isinstance(event, events.PoissonSampledDpEvent):
        return _sampled(pure_epsilon(event.event), event.sampling_probability)
    return math.inf


def basic_epsilon(leaves: Leaves) -> float:
    return math.fsum(pure_epsilon(event) * count for event, count in leaves)


def _sampled(epsilon: float, rate: float) -> float:
    """Amplification by sampling: log(1 + rate (e^epsilon - 1)), which bounds both directions."""
    return math.log1p(rate * math.expm1(epsilon)) if epsilon < 700 else epsilon


def sensitivity_of(leaves: Leaves) -> float:
    """The largest change of all answers, in standard deviations of their noise; 0 where one is not Gaussian."""
    if not all(isinstance(event, events.GaussianDpEvent) and event.noise_multiplier > 0 for event, _ in leaves):
        return 0.0
    return math.sqrt(math.fsum(count / event.noise_multiplier**2 for event, count in leaves))


def delta_of(mu: float, epsilon: float) -> float:
    """The least delta at this epsilon, rounded upwards."""
    first = float(special.ndtr(mu / 2 - epsilon / mu))
    second = math.exp(min(epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu)), 0.0))
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
