"""What cannot be counted, and budgets that nothing meets. It computes nothing."""

from __future__ import annotations

from securetm.errors import Misuse


class UnknownEvent(Misuse):
    """no accountant here bounds the event {event}"""

    event: str
    hint = "a mechanism's event is one of: {known}"
    known: tuple[str, ...] = ()


class UnreadableEvent(Misuse):
    """a recorded event cannot be read: {problem}"""

    problem: str
    hint = "the record was changed, or written by another version: compare it with a copy"


class BudgetTooSmall(Misuse):
    """no {what} stays within epsilon = {epsilon}: {reason}"""

    what: str
    epsilon: str  # with its unit
    reason: str
    instead: str
    hint = "{instead}"


class NoEpsilonHolds(Misuse):
    """no epsilon per {unit} holds at delta = {delta}: an answer exceeds its bound with probability {failure_probability}"""

    unit: str
    delta: str
    failure_probability: str
    hint = (
        "delta must exceed that probability times e^epsilon: "
        "take a larger delta, fewer rounds, or a profile with a smaller `miss`"
    )
