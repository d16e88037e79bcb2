"""A malicious coordinator in an otherwise real run: in some rounds it sends other weights than the model's.

It follows the protocol in everything that a party can check. Afterwards it continues as if it had not asked these rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from securetm.auditing.attack import Effort
from securetm.auditing.leakage_errors import BrokenAttack
from securetm.contracts import Answer, State, TopicModel
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.folder import RunFolder
from securetm.federation.questions import TRAIN


@dataclass(frozen=True)
class MaliciousRounds:
    """In how many rounds of training, the first ones, the coordinator is malicious, and what it sends; `name` is the attack."""

    rounds: int = 0
    name: str = ""
    shown_state: Callable[[State, TopicModel, Effort], State] | None = None
    effort: Effort = field(default_factory=dict)

    def named(self) -> Mapping[str, Any]:
        """What distinguishes such a run from others. Attacks that send the same state share their runs."""
        lie = f"{self.shown_state.__module__}.{self.shown_state.__qualname__}" if self.shown_state is not None else self.name
        return {"meddled": self.rounds, "lie": lie, **{f"lie {name}": amount for name, amount in self.effort.items()}}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:  # noqa: ARG002 - a Corruption
        """The coordinator that takes the place of the honest one."""
        return {"coordinating": partial(MaliciousCoordinator, malicious=self)}


@dataclass
class MaliciousCoordinator(Coordinator):
    """Asks about weights that were made for the answer. If parties learn by themselves, it is honest."""

    malicious: MaliciousRounds = field(default_factory=MaliciousRounds)

    def ask(self, question: str, state: State, *, keep: bool = False) -> Answer:
        """One question to all parties. An answer about other weights counts as that of no document: the model stays."""
        malicious = question == TRAIN and self.numbers.get(TRAIN, 0) < self.malicious.rounds and not self.blind
        if not malicious:
            return super().ask(question, state, keep=keep)
        if self.malicious.shown_state is None:
            raise BrokenAttack(self.malicious.name, "a malicious_state for its coordinator")
        shown = self.malicious.shown_state(state, self.agreement.model, self.malicious.effort)
        answer = super().ask(question, shown, keep=keep)
        total: Mapping[str, Any] = answer.total or {}
        return replace(answer, total={name: np.zeros_like(block) for name, block in total.items()})
