"""The coordinator: it takes a run through its phases with a set of parties that it cannot see into. It holds no document.

It knows what the answers tell it and nothing else, and keeps that in its own store.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.contracts import Answer, State
from securetm.errors import SecuretmError
from securetm.federation import wire
from securetm.federation.common_words import agree_on_words, tell_words
from securetm.federation.questions import COHERENCE, HELD_OUT, TOP_WORDS
from securetm.federation.rounds import Rounds
from securetm.federation.training import CHECKPOINT, Stopping, TrainingPhase, start
from securetm.models.quality import diversity, top_words
from securetm.models.queries import npmi_from_answer, perplexity_from_answer
from securetm.sessions.session_errors import SurvivorsMissing


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
        agreement, kept = self.agreement, self.store.kept_state(CHECKPOINT)
        facts: dict[str, Any] = kept[1] if kept else {"serial": 0, "numbers": {}, "rounds": 0, "history": []}
        self.serial, self.numbers = int(facts["serial"]), dict(facts["numbers"])
        self.store.forget_after(self.serial)  # later rounds will be run again
        self.remembered = dict(facts.get("remembered", dict.fromkeys(self.members, self.serial)))
        self.invite()
        vocabulary = agree_on_words(self)
        tell_words(self, vocabulary)
        training = TrainingPhase(self, Stopping(agreement.plan.training, list(facts["history"])), int(facts["rounds"]))
        state = kept[0] if kept else start(self, vocabulary)
        if kept is None:
            training.keep(state)
        state = training.run(state)
        quality = self.assess(state)
        if self.questions.paid:
            self.ledgers.deliver()
        self.hand_out(state, training.done)
        return Trained(state, vocabulary, training.done, quality, training.ended_by)

    def hand_out(self, state: State, rounds: int) -> None:
        """Tells the parties that the training has ended, and what came of it. A party that does not take it stops nobody."""
        told = {} if self.blind else self.questions.finished(state)
        request = wire.pack_request(self.session, wire.Finish(told, rounds))
        for member, reply in self.parties.ask(dict.fromkeys(self.members, request), self._most):
            with suppress(SecuretmError):
                self._accepted(member, reply)

    def assess(self, state: State) -> dict[str, float]:
        """Returns the quality of the finished model, as far as a coordinator may know it."""
        if self.blind:
            self.ask(HELD_OUT, state)  # only the parties learn the answer
            return {}
        topics = self.agreement.model.topics(state)
        spread = float(diversity(top_words(topics, 25)))
        if self.questions.paid:  # the budget has nothing for these questions
            return {"diversity": spread}
        top = top_words(topics, TOP_WORDS)
        counted, lost = self._measured(COHERENCE, {"top": top.astype(np.int64)}), self._measured(HELD_OUT, state)
        coherence = float(np.mean(npmi_from_answer(top, counted))) if counted else math.nan
        held_out = perplexity_from_answer(lost) if lost else math.nan
        return {"npmi": coherence, "diversity": spread, "held_out": held_out}

    def _measured(self, question: str, state: State) -> Answer | None:
        """Asks for a figure that the run can do without, if parties that answered before a crash never come back."""
        try:
            return self.ask(question, state)
        except SurvivorsMissing:
            if not self.attendance.goes_on_without:
                raise
            return None
