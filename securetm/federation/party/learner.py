"""Training by the parties: where they open the sums, each updates its own copy of the model from the same answers.

All parties start from the plan's public seed, so their states stay equal; the coordinator never sees one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from securetm.contracts import Answer, Array, Memory, State
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.refusal_errors import BadState
from securetm.federation.running_errors import Diverged
from securetm.federation.store import PartyStore
from securetm.models.public_knowledge import without_public
from securetm.models.questions.model_quality import perplexity_from_answer
from securetm.plans.agreement import Agreement

_MINE = "learned/"  # in the party's memory, beside what its model remembers
_ROUNDS = "rounds learned"


@dataclass
class Learner:
    """The shared model as one party holds it."""

    agreement: Agreement
    store: PartyStore
    rounds: int = 0  # whose answers it took
    _state: State = field(default_factory=dict)

    def begin(self, vocabulary: tuple[str, ...], memory: Memory) -> None:
        """Starts the training at the plan's seed, or goes on from the party's kept memory."""
        self._state = learned_in(memory) or self.agreement.start(vocabulary)
        self.rounds = int(memory[_ROUNDS][0]) if _ROUNDS in memory else 0

    def about(self) -> State:
        """Returns the state that questions of the training are about."""
        if not self._state:
            raise BadState("no vocabulary has been agreed on")
        return without_public(self.agreement.model.for_party(self._state, ""))

    def finished(self) -> State:
        """Returns the whole state that came of the training."""
        return self._state

    def learn(self, question: str, answer: Answer) -> None:
        """Takes an opened answer: updates the state, or writes a figure. A state that diverged is not taken over."""
        if question == TRAIN:
            state, self.rounds = self.agreement.model.update(self._state, answer), self.rounds + 1
            if not all(np.isfinite(array).all() for array in state.values()):
                raise Diverged(self.rounds)
            self._state = state
        elif question == HELD_OUT:
            figure = perplexity_from_answer(answer)
            self.store.now("INSERT OR REPLACE INTO figures VALUES (?, ?)", "everybody held_out", figure)

    def remember(self, memory: Memory) -> Mapping[str, Array]:
        """Returns the memory to keep, with the state in it and the number of its rounds."""
        learned = {_MINE + name: array for name, array in self._state.items()}
        return {**memory, **learned, _ROUNDS: np.array([self.rounds], np.int64)}


def learned_in(memory: Mapping[str, Array]) -> State:
    """Returns the shared model from a party's kept memory; empty if there is none."""
    return {name.removeprefix(_MINE): array for name, array in memory.items() if name.startswith(_MINE)}
