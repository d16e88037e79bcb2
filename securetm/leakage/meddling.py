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
class Meddling:
    """In how many rounds of the training the coordinator lies, the first ones, and what it shows; the name is the attack's."""

    rounds: int = 0
    name: str = ""
    meddle: Callable[[State, TopicModel, Effort], State] | None = None
    effort: Effort = field(default_factory=dict)

    def named(self) -> Mapping[str, Any]:
        """What sets a run with these lies apart from others: attacks that tell the same lie share their runs."""
        lie = f"{self.meddle.__module__}.{self.meddle.__qualname__}" if self.meddle is not None else self.name
        return {"meddled": self.rounds, "lie": lie, **{f"lie {name}": amount for name, amount in self.effort.items()}}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:  # noqa: ARG002 - as parties that lie have it
        """Who takes part in the run in place of those who keep to their word."""
        return {"coordinating": partial(LyingCoordinator, meddling=self)}


@dataclass
class LyingCoordinator(Coordinator):
    """Asks about weights that were made for the answer. Where no weights travel, it can show none, and asks as it should."""

    meddling: Meddling = field(default_factory=Meddling)

    def ask(self, question: str, state: State, *, keep: bool = False) -> Answer:
        """One question to all parties, about something else than the model while it lies; what it learns moves no model."""
        lies = question == TRAIN and self._numbers.get(TRAIN, 0) < self.meddling.rounds and not self._blind
        if not lies:
            return super().ask(question, state, keep=keep)
        return _nothing(super().ask(question, self._shown(state), keep=keep))

    def _shown(self, state: State) -> State:
        if self.meddling.meddle is None:
            raise BrokenAttack(self.meddling.name, "a lie of the coordinator")
        return self.meddling.meddle(state, self.model, self.meddling.effort)


def _nothing(answer: Answer) -> Answer:
    """As if no document had taken part: whoever updates a model by it leaves the model as it is."""
    total: Mapping[str, Any] = answer.total or {}
    return replace(answer, total={name: np.zeros_like(block) for name, block in total.items()})
