"""The coordinator: it takes a run through its phases with a set of parties that it cannot see into. It holds no document.

It knows what answers tell it and nothing else; what it keeps is in its own store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from securetm.contracts import State
from securetm.federation import wire
from securetm.federation.assessment import assess
from securetm.federation.common_words import agree_on_words, tell_words
from securetm.federation.rounds import Rounds
from securetm.federation.stopping import Stopping
from securetm.federation.training import CHECKPOINT, TrainingPhase, start


@dataclass(frozen=True)
class Trained:
    """What the coordinator ends with. Every figure in it came from an answer or from public facts."""

    state: State
    vocabulary: tuple[str, ...]
    rounds: int
    quality: Mapping[str, float]
    stopped: str = "rounds"  # what ended the training: rounds, weights, held_out or budget


@dataclass
class Coordinator(Rounds):
    """Runs one session from invitation to assessment; called again on the same store it goes on where it was."""

    def run(self) -> Trained:
        """Invites, agrees on words, trains, assesses."""
        kept = self.store.kept_state(CHECKPOINT)
        facts: dict[str, Any] = kept[1] if kept else {"serial": 0, "numbers": {}, "rounds": 0, "history": []}
        self.go_back_to(int(facts["serial"]), facts["numbers"])
        self.invite()
        vocabulary = agree_on_words(self)
        tell_words(self, vocabulary)
        training = TrainingPhase(self, Stopping(self.agreement.plan.training, list(facts["history"])), int(facts["rounds"]))
        state = kept[0] if kept else start(self, vocabulary)
        if kept is None:
            training.keep(state)
        state = training.run(state)
        quality = self.assess(state)
        if self.questions.paid:
            self.ledgers.deliver()
        return Trained(state, vocabulary, training.done, quality, training.ended_by)

    def invite(self) -> None:
        """To a new session under the agreement, from the last round that was kept."""
        self.tell(wire.Invite(self.agreement.digest, self.agreement.profile.digest, self.members, self.serial))

    def assess(self, state: State) -> dict[str, float]:
        """The quality of the finished model."""
        return assess(self, state)
