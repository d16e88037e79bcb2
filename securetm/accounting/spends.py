"""Spends as data: the events that accountants know, each with one canonical text, and equal answers counted together."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from securetm.data_classes import dataclass, replace
from securetm.errors import BadSetting, Mistake
from securetm.extras import later

if TYPE_CHECKING:
    from dp_accounting import DpEvent, GaussianDpEvent, PoissonSampledDpEvent

events = later("dp_accounting.dp_event")

_DEEPEST = 16
_Check = Callable[[str, Any], Any]  # of a number by its name: gives it as a plain one


def positive(name: str, value: Any) -> float:
    return _number(name, value, "a finite number above 0", lambda x: 0 < x < math.inf)


def _squarable(name: str, value: Any) -> float:
    return _number(name, value, "a finite number above 0, and at least 1e-150", lambda x: 1e-150 <= x < math.inf)


def not_negative(name: str, value: Any) -> float:
    """A finite number, zero or above."""
    return _number(name, value, "a finite number, 0 or above", lambda x: 0 <= x < math.inf)


def rate(name: str, value: Any) -> float:
    """The probability of a thing that must be possible, such as a sampling rate."""
    return _number(name, value, "a probability above 0 and at most 1", lambda x: 0 < x <= 1)


def probability(name: str, value: Any) -> float:
    """The probability of a thing that must not be certain: a delta, a failure probability."""
    return _number(name, value, "a probability, 0 or above and below 1", lambda x: 0 <= x < 1)


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number of answers, steps or steps of a grid."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or int(value) < least:
        raise _impossible(name, value, f"a whole number, {least} or above")
    return int(value)


def _number(name: str, value: Any, wanted: str, holds: Callable[[float], bool]) -> float:
    if isinstance(value, bool) or not isinstance(value, SupportsFloat) or not holds(float(value)):
        raise _impossible(name, value, wanted)
    return float(value)


def _impossible(name: str, value: Any, wanted: str) -> BadSetting:
    instead = f"correct {name}: no privacy can be counted with it"
    return BadSetting("", name, repr(value), f"must be {wanted}", instead=instead)


def _at_least(least: int) -> _Check:
    return lambda name, value: whole(name, value, least)


@cache
def _checks() -> dict[type[DpEvent], tuple[str, dict[str, _Check]]]:
    """How each event is called, and what checks its numbers."""
    from securetm.contracts.events import SymmetricZCDpEvent

    return {
        events.NoOpDpEvent: ("nothing", {}),
        events.NonPrivateDpEvent: ("not private", {}),
        events.GaussianDpEvent: ("gaussian", {"noise_multiplier": _squarable}),
        events.LaplaceDpEvent: ("laplace", {"noise_multiplier": positive}),
        events.DiscreteLaplaceDpEvent: ("discrete laplace", {"noise_parameter": positive, "sensitivity": _at_least(1)}),
        events.RandomizedResponseDpEvent: ("randomised response", {"noise_parameter": rate, "num_buckets": _at_least(2)}),
        events.ZCDpEvent: ("zcdp", {"rho": not_negative, "xi": not_negative}),
        SymmetricZCDpEvent: ("symmetric zcdp", {"rho": not_negative, "xi": not_negative}),
        events.PoissonSampledDpEvent: ("poisson sampled", {"sampling_probability": rate}),
        events.SelfComposedDpEvent: ("self composed", {"count": whole}),
        events.ComposedDpEvent: ("composed", {}),
    }


def _kinds() -> dict[str, type[DpEvent]]:
    return {name: kind for kind, (name, _) in _checks().items()}


def _holds_one(kind: type[DpEvent]) -> bool:
    return kind in (events.PoissonSampledDpEvent, events.SelfComposedDpEvent)


def checked(event: DpEvent, depth: int = 0) -> DpEvent:
    """The same event with plain Python numbers, or the error that names the number which cannot be."""
    kind = type(event)
    if kind not in _checks() or depth > _DEEPEST:
        raise unknown_event(kind.__name__)
    numbers = {name: check(name, getattr(event, name)) for name, check in _checks()[kind][1].items()}
    if kind is events.ComposedDpEvent:
        return events.ComposedDpEvent([checked(part, depth + 1) for part in event.events])
    if _holds_one(kind):
        return kind(event=checked(event.event, depth + 1), **numbers)
    return kind(**numbers)


def unknown_event(event: str) -> Mistake:
    hint = "a mechanism's event is one of: {known}"
    return Mistake("no accountant here bounds the event {event}", hint, event=event, known=tuple(_kinds()))


def event_as_text(event: DpEvent) -> str:
    """One line of canonical JSON; equal events have equal texts, and every float comes back to the last bit."""
    return json.dumps(_as_record(checked(event)), sort_keys=True, separators=(",", ":"), allow_nan=False)


def event_from_text(text: str) -> DpEvent:
    """The event that `event_as_text` wrote; a text that it would not have written is refused."""
    try:
        event = _from_record(json.loads(text))
    except (ValueError, RecursionError) as problem:
        raise _unreadable(type(problem).__name__) from problem
    if event_as_text(event) != text:
        raise _unreadable("it is not in canonical form")
    return event


def _unreadable(problem: str) -> Mistake:
    hint = "the record was changed, or written by another version: compare it with a copy"
    return Mistake("a recorded event cannot be read: {problem}", hint, problem=problem)


def _as_record(event: DpEvent) -> dict[str, Any]:
    called, numbers = _checks()[type(event)]
    record = {"event": called, **{name: getattr(event, name) for name in numbers}}
    if isinstance(event, events.ComposedDpEvent):
        record["of"] = [_as_record(part) for part in event.events]
    elif _holds_one(type(event)):
        record["of"] = _as_record(event.event)
    return record


def _from_record(record: Any, depth: int = 0) -> DpEvent:
    if not isinstance(record, dict) or not isinstance(record.get("event"), str) or record["event"] not in _kinds():
        raise _unreadable("it names no known event")
    kind = _kinds()[record["event"]]
    checks, inner = _checks()[kind][1], {"of"} if _holds_one(kind) or kind is events.ComposedDpEvent else set()
    if set(record) != {"event", *checks, *inner} or depth > _DEEPEST:
        raise _unreadable(f"it has other fields than a {record['event']!r} event")
    numbers = {name: check(name, record[name]) for name, check in checks.items()}
    if kind is not events.ComposedDpEvent:
        return kind(**numbers, **({"event": _from_record(record["of"], depth + 1)} if inner else {}))
    if not isinstance(record["of"], list):
        raise _unreadable("a composed event is not a list")
    return events.ComposedDpEvent([_from_record(part, depth + 1) for part in record["of"]])


# ---- equal answers --------------------------------------------------------------------------------------------------

Leaves = tuple[tuple["DpEvent", int], ...]  # distinct events, none of them composed, and how often each happened


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


@dataclass(frozen=True)
class Bill:
    """What a whole run spends: the words, a question before the training, noise that is drawn once, and an answer a round."""

    words: Spend | None  # all answers about words; nothing where their list is public
    start: Spend | None  # of the question of moments before the training
    once: Spend | None  # of noise that is drawn once per corpus; a later run over the same documents spends it no more
    round: Spend | None  # nothing where all noise is drawn once
    rounds: int

    def spends(self, rounds: float | None = None) -> tuple[Spend, ...]:
        """All spends with so many rounds, or with all; equal answers are counted together."""
        count = self.rounds if rounds is None else round(rounds)
        each = replace(self.round, count=count) if self.round and count else None
        return tuple(spend for spend in (self.words, self.start, self.once, each) if spend is not None)


def failure_probability_of(spends: Sequence[Spend]) -> float:
    """The probability that any of the answers falls outside of its event, by the union bound."""
    return math.fsum(spend.failure_probability * spend.count for spend in spends)


def leaves_of(spends: Sequence[Spend]) -> Leaves:
    """The same spends with equal events counted together; all unsampled Gaussians are one, which is exact."""
    counts: Counter[DpEvent] = Counter()
    for spend in spends:
        for event, count in _unfold(spend.event, spend.count):
            counts[event] += count
    gaussians = [(event, counts.pop(event)) for event in list(counts) if isinstance(event, events.GaussianDpEvent)]
    if gaussians:
        counts[_one_gaussian(gaussians)] += 1
    return tuple(sorted(((event, count) for event, count in counts.items() if count), key=lambda leaf: event_as_text(leaf[0])))


def _unfold(event: DpEvent, count: int) -> Iterator[tuple[DpEvent, int]]:
    if isinstance(event, events.NoOpDpEvent) or count == 0:
        return
    if isinstance(event, events.SelfComposedDpEvent):
        yield from _unfold(event.event, event.count * count)
    elif isinstance(event, events.ComposedDpEvent):
        for part in event.events:
            yield from _unfold(part, count)
    elif isinstance(event, events.PoissonSampledDpEvent):
        yield from _unfold_sampled(event, count)
    else:
        yield event, count


def _unfold_sampled(event: PoissonSampledDpEvent, count: int) -> Iterator[tuple[DpEvent, int]]:
    """Several answers about one sample are one answer about it, where there is one event that bounds them."""
    inner = tuple(_unfold(event.event, 1))
    if event.sampling_probability == 1:
        yield from ((part, times * count) for part, times in inner)
    elif any(isinstance(part, events.NonPrivateDpEvent) for part, _ in inner):
        yield events.NonPrivateDpEvent(), count
    elif inner:
        yield events.PoissonSampledDpEvent(event.sampling_probability, _one_answer(inner)), count


def _one_answer(parts: Leaves) -> DpEvent:
    if len(parts) == 1 and parts[0][1] == 1 and not isinstance(parts[0][0], events.PoissonSampledDpEvent):
        return parts[0][0]
    if all(isinstance(part, events.GaussianDpEvent) for part, _ in parts):
        return _one_gaussian(parts)
    if all(isinstance(part, events.ZCDpEvent) for part, _ in parts):  # adaptively chosen answers need not be symmetric together
        return events.ZCDpEvent(sum(part.rho * times for part, times in parts), sum(part.xi * times for part, times in parts))
    raise unknown_event("of several different answers about one sample")


def _one_gaussian(parts: Sequence[tuple[DpEvent, int]]) -> GaussianDpEvent:
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    return events.GaussianDpEvent(math.fsum(times / part.noise_multiplier**2 for part, times in parts) ** -0.5)
