"""Pure epsilons, which hold at delta 0 and add up. It is infinity for an event that has none."""

from __future__ import annotations

import math

from dp_accounting.dp_event import (
    DiscreteLaplaceDpEvent,
    DpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
)

from securetm.accounting.spends import Leaves


def pure_epsilon(event: DpEvent) -> float:
    """The largest privacy loss of one answer."""
    if isinstance(event, LaplaceDpEvent):
        return 1 / float(event.noise_multiplier)
    if isinstance(event, DiscreteLaplaceDpEvent):
        return float(event.noise_parameter) * int(event.sensitivity)
    if isinstance(event, RandomizedResponseDpEvent):  # replacing a value, which bounds adding or removing one
        return math.log1p(event.num_buckets * (1 - event.noise_parameter) / event.noise_parameter)
    if isinstance(event, PoissonSampledDpEvent):
        return _sampled(pure_epsilon(event.event), event.sampling_probability)
    return math.inf


def basic_epsilon(leaves: Leaves) -> float:
    """The sum of all pure epsilons."""
    return math.fsum(pure_epsilon(event) * count for event, count in leaves)


def _sampled(epsilon: float, rate: float) -> float:
    """Amplification by sampling: log(1 + rate (e^epsilon - 1)), which bounds both directions."""
    return math.log1p(rate * math.expm1(epsilon)) if epsilon < 700 else epsilon
