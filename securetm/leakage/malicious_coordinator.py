"""A malicious coordinator in an otherwise real run: in some rounds it sends other weights than the model's.

It follows the protocol in everything that a party can check, and then goes on as if it had not asked.
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
    """In how many rounds of training the coordinator is malicious, the first ones, and what it sends; `name` is the attack."""

    rounds: int = 0
    name: str = ""
    shown_state: Callable[[State, TopicModel, Effort], State] | None = None
    effort: Effort = field(default_factory=dict)

    def named(self) -> Mapping[str, Any]:
        """What tells such a run from others. Attacks that send the same state share their runs."""
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
        """One question to all parties. Answers about other weights than the model's do not change the model."""
        malicious = question == TRAIN and self.numbers.get(TRAIN, 0) < self.malicious.rounds and not self.blind
        if not malicious:
            return super().ask(question, state, keep=keep)
        return _nothing(super().ask(question, self._shown(state), keep=keep))

    def _shown(self, state: State) -> State:
        if self.malicious.shown_state is None:
            raise BrokenAttack(self.malicious.name, "a lie of the coordinator")
        return self.malicious.shown_state(state, self.agreement.model, self.malicious.effort)


def _nothing(answer: Answer) -> Answer:
    """The answer of no document: it leaves the model as it is."""
    total: Mapping[str, Any] = answer.total or {}
    return replace(answer, total={name: np.zeros_like(block) for name, block in total.items()})
