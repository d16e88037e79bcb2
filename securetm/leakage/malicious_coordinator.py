"""A coordinator that lies, in an otherwise real run: its own code, and in some rounds other weights than the model's.

It keeps to the protocol in all that a party could check, and goes on training as if it had not asked. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from securetm.contracts import Answer, State, TopicModel
from securetm.federation.coordinator import Coordinator
from securetm.federation.folder import RunFolder
from securetm.federation.questions import TRAIN
from securetm.leakage.attack import Effort
from securetm.leakage.leakage_errors import BrokenAttack


@dataclass(frozen=True)
class MaliciousRounds:
    """In how many rounds of the training the coordinator lies, the first ones, and what it shows; the name is the attack's."""

    rounds: int = 0
    name: str = ""
    shown_state: Callable[[State, TopicModel, Effort], State] | None = None
    effort: Effort = field(default_factory=dict)

    def named(self) -> Mapping[str, Any]:
        """What sets a run with these lies apart from others: attacks that tell the same lie share their runs."""
        lie = f"{self.shown_state.__module__}.{self.shown_state.__qualname__}" if self.shown_state is not None else self.name
        return {"meddled": self.rounds, "lie": lie, **{f"lie {name}": amount for name, amount in self.effort.items()}}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:  # noqa: ARG002 - as parties that lie have it
        """Who takes part in the run in place of those who keep to their word."""
        return {"coordinating": partial(MaliciousCoordinator, malicious=self)}


@dataclass
class MaliciousCoordinator(Coordinator):
    """Asks about weights that were made for the answer. Where no weights travel, it can show none, and asks as it should."""

    malicious: MaliciousRounds = field(default_factory=MaliciousRounds)

    def ask(self, question: str, state: State, *, keep: bool = False) -> Answer:
        """One question to all parties, about something else than the model while it lies; what it learns moves no model."""
        lies = question == TRAIN and self._numbers.get(TRAIN, 0) < self.malicious.rounds and not self._blind
        if not lies:
            return super().ask(question, state, keep=keep)
        return _nothing(super().ask(question, self._shown(state), keep=keep))

    def _shown(self, state: State) -> State:
        if self.malicious.shown_state is None:
            raise BrokenAttack(self.malicious.name, "a lie of the coordinator")
        return self.malicious.shown_state(state, self.agreement.model, self.malicious.effort)


def _nothing(answer: Answer) -> Answer:
    """As if no document had taken part: whoever updates a model by it leaves the model as it is."""
    total: Mapping[str, Any] = answer.total or {}
    return replace(answer, total={name: np.zeros_like(block) for name, block in total.items()})
