"""Spends as data: equal answers with their event, and many spends as few distinct events. It composes nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dp_accounting.dp_event import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)

from securetm.accounting.accounting_errors import UnknownEvent
from securetm.accounting.events import checked, event_as_text, event_from_text, probability, whole

__all__ = ["Leaves", "Spend", "event_as_text", "event_from_text", "failure_probability_of", "leaves_of"]

Leaves = tuple[tuple[DpEvent, int], ...]  # distinct events, none of them composed, and how often each happened


@dataclass(frozen=True)
class Spend:
    """Some equal answers, each bounded by `event` but for a failure probability of each answer."""

    event: DpEvent
    failure_probability: float = 0.0
    count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "event", checked(self.event))
        object.__setattr__(self, "failure_probability", probability("failure_probability", self.failure_probability))
        object.__setattr__(self, "count", whole("count", self.count))


def failure_probability_of(spends: Sequence[Spend]) -> float:
    """The probability that any of the answers falls outside of its event, by the union bound."""
    return math.fsum(spend.failure_probability * spend.count for spend in spends)


def leaves_of(spends: Sequence[Spend]) -> Leaves:
    """The same spends with equal events counted together; all unsampled Gaussians are one, which is exact."""
    counts: Counter[DpEvent] = Counter()
    for spend in spends:
        for event, count in _unfold(spend.event, spend.count):
            counts[event] += count
    gaussians = [(event, counts.pop(event)) for event in list(counts) if isinstance(event, GaussianDpEvent)]
    if gaussians:
        counts[_one_gaussian(gaussians)] += 1
    return tuple(sorted(((event, count) for event, count in counts.items() if count), key=lambda leaf: event_as_text(leaf[0])))


def _unfold(event: DpEvent, count: int) -> Iterator[tuple[DpEvent, int]]:
    if isinstance(event, NoOpDpEvent) or count == 0:
        return
    if isinstance(event, SelfComposedDpEvent):
        yield from _unfold(event.event, event.count * count)
    elif isinstance(event, ComposedDpEvent):
        for part in event.events:
            yield from _unfold(part, count)
    elif isinstance(event, PoissonSampledDpEvent):
        yield from _unfold_sampled(event, count)
    else:
        yield event, count


def _unfold_sampled(event: PoissonSampledDpEvent, count: int) -> Iterator[tuple[DpEvent, int]]:
    """Several answers about one sample are one answer about it, where there is one event that bounds them."""
    inner = tuple(_unfold(event.event, 1))
    if event.sampling_probability == 1:
        yield from ((part, times * count) for part, times in inner)
    elif any(isinstance(part, NonPrivateDpEvent) for part, _ in inner):
        yield NonPrivateDpEvent(), count
    elif inner:
        yield PoissonSampledDpEvent(event.sampling_probability, _one_answer(inner)), count


def _one_answer(parts: Leaves) -> DpEvent:
    if len(parts) == 1 and parts[0][1] == 1 and not isinstance(parts[0][0], PoissonSampledDpEvent):
        return parts[0][0]
    if all(isinstance(part, GaussianDpEvent) for part, _ in parts):
        return _one_gaussian(parts)
    if all(isinstance(part, ZCDpEvent) for part, _ in parts):  # adaptively chosen answers need not be symmetric together
        return ZCDpEvent(sum(part.rho * times for part, times in parts), sum(part.xi * times for part, times in parts))
    raise UnknownEvent("of several different answers about one sample")


def _one_gaussian(parts: Sequence[tuple[DpEvent, int]]) -> GaussianDpEvent:
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    return GaussianDpEvent(math.fsum(times / part.noise_multiplier**2 for part, times in parts) ** -0.5)
