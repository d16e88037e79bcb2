"""Privacy loss distributions of the events that have one, composed and rounded upwards. No Renyi divergences here."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from dp_accounting.dp_event import (
    DiscreteLaplaceDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
)
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as distributions

from securetm.accounting.pure import pure_epsilon
from securetm.accounting.renyi import ORDERS, curve_of, epsilons_at
from securetm.accounting.spends import Leaves

FINEST = 1e-4  # the losses' grid; rounded upwards, so a coarser one is as sound and says more
_MOST_CELLS = 1_000_000
_COARSEST = 0.1
_MOST_ANSWERS = 1_000_000  # beyond, the library's loops do not end, and its rounding could be seen in delta
_MOST_EVENTS = 40  # each distinct event costs a convolution or two: beyond, Renyi divergences say almost as much
_TAIL = 1e-15  # what dp_accounting cuts off and counts as lost

Distribution = Any  # dp_accounting's PrivacyLossDistribution; the library ships no types


def split(leaves: Leaves) -> tuple[Leaves, Leaves]:
    """Those events that have a loss distribution, and those that have none."""
    with_one = tuple(leaf for leaf in leaves if has_distribution(leaf[0]))
    return with_one, tuple(leaf for leaf in leaves if leaf not in with_one)


def has_distribution(event: DpEvent) -> bool:
    """Whether a pair of distributions is known that no pair of neighbours exceeds at any epsilon."""
    inner = event.event if isinstance(event, PoissonSampledDpEvent) else event
    return isinstance(inner, GaussianDpEvent) or pure_epsilon(inner) < math.inf


def interval_for(leaves: Leaves) -> float:
    """The grid that keeps the composed distribution in memory; infinity where none does.

    The losses reach about as far as epsilon does at the delta that is cut off anyway, and Renyi divergences know that at once.
    """
    answers = sum(1 if isinstance(event, GaussianDpEvent) else count for event, count in leaves)
    if len(leaves) > _MOST_EVENTS or answers > _MOST_ANSWERS or any(isinstance(e, NonPrivateDpEvent) for e, _ in leaves):
        return math.inf
    reach = max(
        float(epsilons_at(ORDERS, curve_of(((event, times),)), _TAIL).min()) for event, count in leaves for times in {1, count}
    )
    together = float(epsilons_at(ORDERS, curve_of(leaves), _TAIL).min())
    interval = FINEST
    while max(reach, together) / interval > _MOST_CELLS:
        interval *= 2
    return interval if interval <= _COARSEST else math.inf


def composed(leaves: Leaves, interval: float) -> Distribution:
    """The loss of all these answers together, at most."""
    total = distributions.identity(value_discretization_interval=interval)
    for event, count in leaves:
        total = total.compose(_repeated(event, count, interval), _TAIL)
    return total


@lru_cache(maxsize=8)
def composed_once(leaves: Leaves, interval: float) -> Distribution:
    """The same, remembered: several parties ask about equal spends."""
    return composed(leaves, interval)


@lru_cache(maxsize=8)
def _repeated(event: DpEvent, count: int, interval: float) -> Distribution:
    if isinstance(event, GaussianDpEvent):  # repeated Gaussians are one, exactly
        return _single(GaussianDpEvent(event.noise_multiplier / math.sqrt(count)), interval)
    return _single(event, interval) if count == 1 else _single(event, interval).self_compose(count, _TAIL)


@lru_cache(maxsize=32)
def _single(event: DpEvent, interval: float) -> Distribution:
    inner, rate = (event.event, event.sampling_probability) if isinstance(event, PoissonSampledDpEvent) else (event, 1.0)
    settings = {"value_discretization_interval": interval}
    if isinstance(inner, GaussianDpEvent):
        return distributions.from_gaussian_mechanism(inner.noise_multiplier, sampling_prob=rate, **settings)
    if isinstance(inner, LaplaceDpEvent):
        return distributions.from_laplace_mechanism(inner.noise_multiplier, sampling_prob=rate, **settings)
    if isinstance(event, DiscreteLaplaceDpEvent):
        return distributions.from_discrete_laplace_mechanism(event.noise_parameter, event.sensitivity, **settings)
    return distributions.from_privacy_parameters(common.DifferentialPrivacyParameters(pure_epsilon(event), 0), **settings)


def rounding_of(leaves: Leaves) -> float:
    """What the Fourier transforms may lose of delta in floating point.

    Their coefficients are off by about 1e-16 and are raised to the number of answers; against the exact Gaussian
    100,000 answers were off by 3e-12. Thirty times that is kept aside.
    """
    return 1e-13 + 1e-15 * sum(1 if isinstance(event, GaussianDpEvent) else count for event, count in leaves)
