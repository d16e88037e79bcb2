"""Privacy loss distributions of the events that have one, composed and rounded upwards. No Renyi divergences here."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from securetm.accounting.closed_forms import pure_epsilon
from securetm.accounting.renyi import ORDERS, curve_of, epsilons_at
from securetm.accounting.spends import Leaves
from securetm.extras import later

if TYPE_CHECKING:
    from dp_accounting import DpEvent

events, common = later("dp_accounting.dp_event"), later("dp_accounting.pld.common")
distributions = later("dp_accounting.pld.privacy_loss_distribution")

FINEST = 1e-4  # the grid of losses, which are rounded upwards; a coarser grid is sound too, and gives a larger epsilon
_MOST_CELLS = 250_000  # more take seconds for each composition, and a search composes dozens of times
_FEWER_CELLS = 50_000  # of such large losses, whose epsilon then is about a ten-thousandth too large
_MOST_ANSWERS = 1_000_000  # beyond, the library's loops take too long, and its rounding would be visible in delta
_MOST_EVENTS = 40  # each distinct event takes a convolution or two; beyond, Renyi divergences are almost as sharp
_TAIL = 1e-15  # of the distribution, which dp_accounting truncates and adds to delta

Distribution = Any  # dp_accounting's PrivacyLossDistribution; the library ships no types


def split(leaves: Leaves) -> tuple[Leaves, Leaves]:
    """Those events that have a loss distribution, and those that have none."""
    inner = [event.event if isinstance(event, events.PoissonSampledDpEvent) else event for event, _ in leaves]
    known = [isinstance(one, events.GaussianDpEvent) or pure_epsilon(one) < math.inf for one in inner]
    with_one = tuple(leaf for leaf, has_pair in zip(leaves, known, strict=True) if has_pair)
    return with_one, tuple(leaf for leaf in leaves if leaf not in with_one)


def interval_for(leaves: Leaves) -> float:
    """The grid with which the composed distribution fits into memory; infinity where none does.

    The largest loss is about epsilon at the truncated delta, which Renyi divergences give quickly.
    """
    answers = sum(1 if isinstance(event, events.GaussianDpEvent) else count for event, count in leaves)
    if len(leaves) > _MOST_EVENTS or answers > _MOST_ANSWERS or any(isinstance(e, events.NonPrivateDpEvent) for e, _ in leaves):
        return math.inf
    reach = max(
        float(epsilons_at(ORDERS, curve_of(((event, times),)), _TAIL).min()) for event, count in leaves for times in {1, count}
    )
    together = float(epsilons_at(ORDERS, curve_of(leaves), _TAIL).min())
    interval, largest = FINEST, max(reach, together)
    most = _MOST_CELLS if largest / FINEST <= _MOST_CELLS else _FEWER_CELLS
    while largest / interval > most:
        interval *= 2
    return interval if interval <= 0.1 else math.inf


@lru_cache(maxsize=8)  # several parties have equal spends
def composed(leaves: Leaves, interval: float) -> Distribution:
    """The loss of all these answers together, at most."""
    total = distributions.identity(value_discretization_interval=interval)
    for event, count in leaves:
        total = total.compose(_repeated(event, count, interval), _TAIL)
    return total


@lru_cache(maxsize=8)
def _repeated(event: DpEvent, count: int, interval: float) -> Distribution:
    if isinstance(event, events.GaussianDpEvent):  # repeated Gaussians are one, exactly
        return _single(events.GaussianDpEvent(event.noise_multiplier / math.sqrt(count)), interval)
    return _single(event, interval) if count == 1 else _single(event, interval).self_compose(count, _TAIL)


@lru_cache(maxsize=32)
def _single(event: DpEvent, interval: float) -> Distribution:
    inner, rate = (event.event, event.sampling_probability) if isinstance(event, events.PoissonSampledDpEvent) else (event, 1.0)
    settings = {"value_discretization_interval": interval}
    if isinstance(inner, events.GaussianDpEvent):
        return distributions.from_gaussian_mechanism(inner.noise_multiplier, sampling_prob=rate, **settings)
    if isinstance(inner, events.LaplaceDpEvent):
        return distributions.from_laplace_mechanism(inner.noise_multiplier, sampling_prob=rate, **settings)
    if isinstance(event, events.DiscreteLaplaceDpEvent):
        return distributions.from_discrete_laplace_mechanism(event.noise_parameter, event.sensitivity, **settings)
    return distributions.from_privacy_parameters(common.DifferentialPrivacyParameters(pure_epsilon(event), 0), **settings)


def rounding_of(leaves: Leaves) -> float:
    """The error of delta by the Fourier transforms' floating-point arithmetic.

    Their coefficients have errors of about 1e-16 and are raised to the number of answers. Beside the exact Gaussian, 100,000
    answers had an error of 3e-12. The bound here is thirty times as large.
    """
    return 1e-13 + 1e-15 * sum(1 if isinstance(event, events.GaussianDpEvent) else count for event, count in leaves)
