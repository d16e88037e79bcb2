"""What cannot be asked of the budget calculator, and what it cannot reach. It computes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.meant import did_you_mean
from securetm.errors.tree import Misuse

_KNOWN = "known: "


@dataclass(eq=False)
class NonsenseArgument(Misuse):
    """{option} = {value} {problem}"""

    option: str
    value: str
    problem: str
    instead: str
    hint = "{instead}"

    def advice(self) -> str:
        """With the name that was meant, where the advice lists those there are."""
        listed = self.instead.removeprefix(_KNOWN).split(", ") if self.instead.startswith(_KNOWN) else ()
        return did_you_mean(self.value, listed) + super().advice()


@dataclass(eq=False)
class BudgetTooSmall(Misuse):
    """no {what} stays within epsilon = {epsilon} per {unit} here: {reason}"""

    what: str
    epsilon: str
    unit: str
    reason: str
    instead: str
    hint = "{instead}"


@dataclass(eq=False)
class NothingSpent(Misuse):
    """{name} spends no privacy budget: {reason}"""

    name: str
    reason: str
    hint = "there is nothing to compute; `securetm explain {name}` says what it protects by other means"


@dataclass(eq=False)
class NoEpsilonHolds(Misuse):
    """no epsilon per {unit} holds at delta = {delta}: an answer exceeds its bound with probability {failure_probability}"""

    unit: str
    delta: str
    failure_probability: str
    hint = "that chance counts e^epsilon times: take a larger delta, fewer rounds, or a profile that cuts rarer tails (`miss`)"
