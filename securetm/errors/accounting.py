"""What cannot be counted: noise, rates and deltas that are none, events without a bound, budgets that nothing meets."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse


@dataclass(eq=False)
class ImpossibleNumber(Misuse):
    """{name} = {value} is not {wanted}"""

    name: str
    value: str
    wanted: str
    hint = "correct {name}: no privacy can be counted with it"


@dataclass(eq=False)
class UnknownEvent(Misuse):
    """no accountant here bounds the event {event}"""

    event: str
    hint = "a mechanism's event is one of: {known}"
    known: tuple[str, ...] = ()


@dataclass(eq=False)
class UnreadableEvent(Misuse):
    """a recorded event cannot be read: {problem}"""

    problem: str
    hint = "the record was changed, or written by another version: compare it with a copy"


@dataclass(eq=False)
class OutOfReach(Misuse):
    """no {what} between {low} and {high} stays within epsilon {epsilon} at delta {delta}"""

    what: str
    low: float
    high: float
    epsilon: float
    delta: float
    hint = "allow a larger epsilon, more noise, fewer rounds or smaller batches"
