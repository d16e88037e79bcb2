"""The events that accountants know: their parameters are checked, and each has one canonical text. It bounds nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, SupportsFloat, SupportsIndex

from dp_accounting.dp_event import (
    ComposedDpEvent,
    DiscreteLaplaceDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    ZCDpEvent,
)

from securetm.accounting.accounting_errors import UnknownEvent, UnreadableEvent
from securetm.contracts.zcdp_event import SymmetricZCDpEvent
from securetm.errors import BadSetting

_DEEPEST = 16
_Check = Callable[[str, Any], Any]  # of a number by its name: gives it as a plain one


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
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


_EVENTS: dict[type[DpEvent], tuple[str, dict[str, _Check]]] = {  # how each is called, and what checks its numbers
    NoOpDpEvent: ("nothing", {}),
    NonPrivateDpEvent: ("not private", {}),
    GaussianDpEvent: ("gaussian", {"noise_multiplier": _squarable}),
    LaplaceDpEvent: ("laplace", {"noise_multiplier": positive}),
    DiscreteLaplaceDpEvent: ("discrete laplace", {"noise_parameter": positive, "sensitivity": _at_least(1)}),
    RandomizedResponseDpEvent: ("randomised response", {"noise_parameter": rate, "num_buckets": _at_least(2)}),
    ZCDpEvent: ("zcdp", {"rho": not_negative, "xi": not_negative}),
    SymmetricZCDpEvent: ("symmetric zcdp", {"rho": not_negative, "xi": not_negative}),
    PoissonSampledDpEvent: ("poisson sampled", {"sampling_probability": rate}),
    SelfComposedDpEvent: ("self composed", {"count": whole}),
    ComposedDpEvent: ("composed", {}),
}
_KINDS = {name: kind for kind, (name, _) in _EVENTS.items()}
_HOLD_ONE = (PoissonSampledDpEvent, SelfComposedDpEvent)


def checked(event: DpEvent, depth: int = 0) -> DpEvent:
    """The same event with plain Python numbers, or the error that names the number which cannot be."""
    kind = type(event)
    if kind not in _EVENTS or depth > _DEEPEST:
        raise UnknownEvent(kind.__name__, tuple(_KINDS))
    numbers = {name: check(name, getattr(event, name)) for name, check in _EVENTS[kind][1].items()}
    if kind is ComposedDpEvent:
        return ComposedDpEvent([checked(part, depth + 1) for part in event.events])
    if kind in _HOLD_ONE:
        return kind(event=checked(event.event, depth + 1), **numbers)
    return kind(**numbers)


def event_as_text(event: DpEvent) -> str:
    """One line of canonical JSON; equal events have equal texts, and every float comes back to the last bit."""
    return json.dumps(_as_record(checked(event)), sort_keys=True, separators=(",", ":"), allow_nan=False)


def event_from_text(text: str) -> DpEvent:
    """The event that `event_as_text` wrote; a text that it would not have written is refused."""
    try:
        event = _from_record(json.loads(text))
    except (ValueError, RecursionError) as problem:
        raise UnreadableEvent(type(problem).__name__) from problem
    if event_as_text(event) != text:
        raise UnreadableEvent("it is not in canonical form")
    return event


def _as_record(event: DpEvent) -> dict[str, Any]:
    called, numbers = _EVENTS[type(event)]
    record = {"event": called, **{name: getattr(event, name) for name in numbers}}
    if isinstance(event, ComposedDpEvent):
        record["of"] = [_as_record(part) for part in event.events]
    elif isinstance(event, _HOLD_ONE):
        record["of"] = _as_record(event.event)
    return record


def _from_record(record: Any, depth: int = 0) -> DpEvent:
    if not isinstance(record, dict) or not isinstance(record.get("event"), str) or record["event"] not in _KINDS:
        raise UnreadableEvent("it names no known event")
    kind = _KINDS[record["event"]]
    checks, inner = _EVENTS[kind][1], {"of"} if kind in (*_HOLD_ONE, ComposedDpEvent) else set()
    if set(record) != {"event", *checks, *inner} or depth > _DEEPEST:
        raise UnreadableEvent(f"it has other fields than a {record['event']!r} event")
    numbers = {name: check(name, record[name]) for name, check in checks.items()}
    if kind is not ComposedDpEvent:
        return kind(**numbers, **({"event": _from_record(record["of"], depth + 1)} if inner else {}))
    if not isinstance(record["of"], list):
        raise UnreadableEvent("a composed event is not a list")
    return ComposedDpEvent([_from_record(part, depth + 1) for part in record["of"]])
