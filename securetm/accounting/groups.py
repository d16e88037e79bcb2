"""Group privacy: epsilon for several units, computed from the epsilon of one unit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dp_accounting.dp_event import (
    DiscreteLaplaceDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    ZCDpEvent,
)

from securetm.accounting.composition import Total, total
from securetm.accounting.events import probability, whole
from securetm.accounting.spends import Spend, failure_probability_of, leaves_of

GROUP = "group privacy"
_STEPS = 60


def for_group(spends: Sequence[Spend], size: int, delta: float) -> Total:
    """What these spends are for a group of so many units: all documents of a person, all words of a document.

    Where every event is noise on a sum that was not sampled, the group is one unit with as many times the sensitivity, which is
    sharper; the better of both is given.
    """
    size, wanted = whole("group size", size, least=1), probability("delta", delta)
    if size == 1:
        return total(spends, wanted)
    ways = [_by_chain(spends, size, wanted)]
    scaled = [_scaled(event, size) for event, _ in leaves_of(spends)]
    if all(event is not None for event in scaled):
        together = [Spend(event, 0.0, count) for event, (_, count) in zip(scaled, leaves_of(spends), strict=True) if event]
        ways.append(total([*together, *_failures_alone(spends)], wanted))
    return min(ways, key=lambda found: found.epsilon)


def group_of(one: Total, size: int) -> Total:
    """(epsilon, delta) for one unit as (m epsilon, delta (e^(m epsilon) - 1) / (e^epsilon - 1)) for m of them."""
    times = whole("group size", size, least=1)
    return Total(times * one.epsilon, _chained(one.epsilon, one.delta, times), one.accountant if times == 1 else GROUP)


def _chained(epsilon: float, delta: float, size: int) -> float:
    if delta == 0 or size == 1:
        return delta
    if epsilon == 0:
        return min(1.0, size * delta)
    return min(1.0, delta * math.expm1(size * epsilon) / math.expm1(epsilon)) if size * epsilon < 700 else 1.0


def _by_chain(spends: Sequence[Spend], size: int, delta: float) -> Total:
    """The largest delta for one unit whose chain stays within the group's; smaller ones are tried on a bisected scale."""
    if delta == 0:
        return Total(size * total(spends, 0.0).epsilon, 0.0, GROUP)
    low, high = math.log(1e-300), math.log(delta / size)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        epsilon = total(spends, math.exp(middle)).epsilon
        low, high = (middle, high) if _chained(epsilon, math.exp(middle), size) <= delta else (low, middle)
    epsilon = total(spends, math.exp(low)).epsilon
    chained = _chained(epsilon, math.exp(low), size)
    return Total(size * epsilon if chained <= delta else math.inf, delta, GROUP)


def _scaled(event: DpEvent, size: int) -> DpEvent | None:
    """The event of the same noise where the sum may move by `size` times as much; None where that is not all there is to it."""
    if isinstance(event, GaussianDpEvent | LaplaceDpEvent):
        return type(event)(event.noise_multiplier / size)
    if isinstance(event, DiscreteLaplaceDpEvent):
        return DiscreteLaplaceDpEvent(event.noise_parameter, event.sensitivity * size)
    if isinstance(event, ZCDpEvent) and event.xi == 0:  # Bun and Steinke 2016, proposition 1.9
        return ZCDpEvent(event.rho * size**2, 0.0)
    return event if isinstance(event, NonPrivateDpEvent) else None


def _failures_alone(spends: Sequence[Spend]) -> list[Spend]:
    """Slack is about answers, whatever the group; it stays as it is."""
    failure_probability = failure_probability_of(spends)
    return [Spend(ZCDpEvent(0.0, 0.0), min(failure_probability, 1 - 1e-16))] if failure_probability else []
