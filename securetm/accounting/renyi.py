"""Renyi divergences of every event by order, and the epsilon and delta that follow. It uses no loss distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from securetm.accounting.closed_forms import pure_epsilon
from securetm.accounting.spends import Leaves, Spend, leaves_of, unknown_event
from securetm.contracts import Array
from securetm.extras import later

if TYPE_CHECKING:
    from dp_accounting import DpEvent

events, special = later("dp_accounting.dp_event"), later("scipy.special")

_LARGEST_SAMPLED = 1024  # the binomial expansion is evaluated up to this order
_ROUNDING = 1e-14  # of a logarithm of a sum near one, which a million answers would make visible
_LEAST_INTEGRATED = 0.05  # below, the integral takes too many steps, and the chord between whole orders is used
ORDERS: Array = np.array(  # `np.unique` would load masked arrays
    sorted(
        {
            *(1 + np.geomspace(0.01, 1, 60)),
            *np.linspace(2, 12, 101).round(1),
            *np.arange(12.0, 65),
            *np.geomspace(65, _LARGEST_SAMPLED, 60).round(),
            *np.geomspace(_LARGEST_SAMPLED, 2.0**24, 120).round(),
        }
    )
)

Curve = Callable[[Array], Array]  # the Renyi divergence at each of many orders above one, the larger of both directions


def renyi_curve(spends: Sequence[Spend], orders: Array = ORDERS) -> Array:
    """The divergence of all these answers together at each order; failure probability is not in it."""
    return curve_of(leaves_of(spends), np.asarray(orders, dtype=float))


def curve_of(leaves: Leaves, orders: Array = ORDERS) -> Array:
    """The same of events that are already counted together."""
    wanted = tuple(map(float, orders))
    total = np.zeros(len(wanted))
    for event, count in leaves:
        total = total + count * _event_curve(event, wanted)
    return total


def epsilons_at(orders: Array, rdp: Array, delta: float) -> Array:
    """Epsilon by each order (Canonne, Kamath and Steinke 2020, proposition 12); each is sound, so the least is, too."""
    if delta <= 0:
        return np.where(rdp == 0, 0.0, math.inf)
    epsilons = rdp + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    # total variation is at most sqrt(1 - exp(-divergence)) (Bretagnolle and Huber): where delta covers it, epsilon is 0
    return np.where(delta**2 + np.expm1(-rdp) > 0, 0.0, np.maximum(epsilons, 0.0))


def deltas_at(orders: Array, rdp: Array, epsilon: float) -> Array:
    """Delta by each order at this epsilon: the same conversion the other way."""
    with np.errstate(over="ignore"):
        logs = (orders - 1) * (rdp - epsilon + np.log1p(-1 / orders)) - np.log(orders)
        distances = np.sqrt(-np.expm1(-rdp))
    return np.minimum(np.exp(np.minimum(logs, 0.0)), distances)


@lru_cache(maxsize=256)
def _event_curve(event: DpEvent, orders: tuple[float, ...]) -> Array:
    curve = _curve(event)(np.array(orders))
    curve.setflags(write=False)
    return curve


def _curve(event: DpEvent) -> Curve:
    if isinstance(event, events.PoissonSampledDpEvent):
        return lambda orders: _sampled(event.event, event.sampling_probability, orders)
    if isinstance(event, events.GaussianDpEvent):
        return lambda orders: orders / (2 * event.noise_multiplier**2)
    if isinstance(event, events.ZCDpEvent):  # and the symmetric ones
        return lambda orders: event.xi + event.rho * orders
    if isinstance(event, events.NonPrivateDpEvent):
        return lambda orders: np.full(len(orders), math.inf)
    if isinstance(event, events.LaplaceDpEvent):
        return lambda orders: _laplace(1 / event.noise_multiplier, orders)
    if isinstance(event, events.DiscreteLaplaceDpEvent):
        return lambda orders: _discrete_laplace(event.noise_parameter, event.sensitivity, orders)
    if isinstance(event, events.RandomizedResponseDpEvent):
        return lambda orders: _pure(pure_epsilon(event), orders)
    raise unknown_event(type(event).__name__)


def _pure(epsilon: float, orders: Array) -> Array:
    """The largest divergence that a pure epsilon allows, which is that of randomised response."""
    most: Array = (np.logaddexp(orders * epsilon, (1 - orders) * epsilon) - np.logaddexp(0, epsilon)) / (orders - 1)
    return most


def _laplace(epsilon: float, orders: Array) -> Array:
    """Mironov 2017, proposition 6."""
    exact: Array = epsilon + np.log1p((orders - 1) * np.expm1(epsilon * (1 - 2 * orders)) / (2 * orders - 1)) / (orders - 1)
    return exact


def _discrete_laplace(parameter: float, sensitivity: int, orders: Array) -> Array:
    """The sum of P^a Q^(1-a): below both centres, above both, and the geometric series between them."""
    ratio, single = -parameter * (2 * orders - 1), math.log(-math.expm1(-parameter))
    below, above = parameter * sensitivity * (orders - 1), -parameter * sensitivity * orders
    with np.errstate(divide="ignore"):
        between = below + ratio + np.log(-np.expm1(ratio * (sensitivity - 1))) - np.log(-np.expm1(ratio)) + single
    parts = special.logsumexp([below, above, between], axis=0) + math.log(math.tanh(parameter / 2)) - single
    exact: Array = parts / (orders - 1)
    return exact


def _sampled(event: DpEvent, rate: float, orders: Array) -> Array:
    """The least of several bounds for an answer about a Poisson sample. Each of them bounds both directions.

    Convexity of x^a and of x^(1-a) in the sampled distribution holds for any answer and order. The binomial expansion needs
    whole orders; between them (a - 1) x divergence is convex in a (van Erven and Harremoes 2014), so the chord bounds it.
    """
    plain = _curve(event)(orders)
    with np.errstate(over="ignore"):
        mixed = np.logaddexp(math.log1p(-rate), math.log(rate) + (orders - 1) * plain) / (orders - 1)
    least: Array = np.minimum(plain, mixed)
    pure = pure_epsilon(events.PoissonSampledDpEvent(rate, event))
    if pure < math.inf:
        least = np.minimum(least, _pure(pure, orders))
    within = orders <= _LARGEST_SAMPLED
    least[within] = np.minimum(least[within], _chords(event, rate, orders[within]))
    if isinstance(event, events.GaussianDpEvent) and event.noise_multiplier >= _LEAST_INTEGRATED:
        between = (orders % 1 != 0) & (orders <= 12.0)
        least[between] = [_integral(event.noise_multiplier, rate, order) for order in orders[between].tolist()]
    return np.maximum(least, 0.0) + _ROUNDING / (orders - 1)


def _integral(noise: float, rate: float, order: float) -> float:
    """The sampled Gaussian's divergence at a broken order: the mean of (1 - rate + rate e^((2z - 1) / (2 noise^2)))^order.

    The integrand is analytic within pi noise^2 of the real line and Gaussian beyond, so the trapezoidal rule at this step is
    exact to double precision (Trefethen and Weideman 2014).
    """
    step = min(noise, noise**2) / 2
    z = np.arange(-12 * noise, order + 12 * noise, step)
    ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * z - 1) / (2 * noise**2))
    density = -(z**2) / (2 * noise**2) - math.log(noise * math.sqrt(2 * math.pi))
    return float(special.logsumexp(order * ratio + density) + math.log(step)) / (order - 1)


def _chords(event: DpEvent, rate: float, orders: Array) -> Array:
    low, high = np.floor(orders).astype(int), np.ceil(orders).astype(int)
    moments = {order: _log_moment(event, rate, order) for order in sorted({*low.tolist(), *high.tolist()})}
    share = orders - low
    below, above = (np.array([moments[order] for order in ends.tolist()]) for ends in (low, high))
    chords: Array = ((1 - share) * below + np.where(share > 0, share * above, 0.0)) / (orders - 1)
    return chords


def _log_moment(event: DpEvent, rate: float, order: int) -> float:
    """(order - 1) x divergence, by the binomial expansion.

    For noise that is symmetric about zero, it is the expansion itself (Mironov, Talwar and Zhang 2019, theorem 5). For any
    other noise, the terms from the third on count three times (Zhu and Wang 2019, theorem 5).
    """
    if order == 1:
        return 0.0
    terms = np.arange(2, order + 1, dtype=float)
    from securetm.contracts.events import SymmetricZCDpEvent

    symmetric = isinstance(
        event, events.GaussianDpEvent | events.LaplaceDpEvent | events.DiscreteLaplaceDpEvent | SymmetricZCDpEvent
    )
    chosen = special.gammaln(order + 1) - special.gammaln(terms + 1) - special.gammaln(order - terms + 1)
    logs = chosen + (order - terms) * math.log1p(-rate) + terms * math.log(rate) + (terms - 1) * _curve(event)(terms)
    if not symmetric:
        logs[1:] += math.log(3)
    first = (order - 1) * math.log1p(-rate) + math.log1p((order - 1) * rate)
    return float(np.logaddexp(first, special.logsumexp(logs)))
