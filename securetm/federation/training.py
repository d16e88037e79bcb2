"""The coordinator's training: one question, one answer, one update, until the plan says that it is enough."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from securetm.contracts import Answer, State
from securetm.federation.paying_errors import NoBudgetLeft
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.rounds import Rounds
from securetm.federation.running_errors import Diverged
from securetm.federation.stopping import Stopping, relative_change
from securetm.models.queries import perplexity_from_answer

SECONDS_BETWEEN_KEEPS = 2.0
CHECKPOINT, BEST = "checkpoint", "best"


@dataclass
class TrainingPhase:
    """The training of one run, from a kept state or from the start."""

    rounds: Rounds
    stopping: Stopping
    done: int = 0
    exhausted: bool = False  # whether a party's budget ended it
    _kept_at: float = 0.0

    @property
    def _by_loss(self) -> bool:
        return self.stopping.choice.stop == HELD_OUT

    @property
    def ended_by(self) -> str:
        """What ended the training: rounds, weights, held_out or budget."""
        choice = self.stopping.choice
        return "budget" if self.exhausted else "rounds" if self.done >= choice.rounds else choice.stop

    def run(self, state: State) -> State:
        """Trains, and returns the last state; or the best one, where the plan stops by the held-out loss."""
        if self.rounds.blind:
            return self._conduct(state)
        model, total = self.rounds.agreement.model, self.stopping.choice.rounds
        mark = model.for_party(state, "")
        while self.done < total and not self.stopping.settled():
            judged = self.stopping.due(self.done + 1)
            keep = self.keep_is_due() or self.done + 1 == total or judged
            state = self._asked_before(TRAIN, state)
            # Parties hold two kept rounds, so a step keeps once: after its last question.
            answer = self._afforded(state, keep=keep and not (judged and self._by_loss))
            if answer is None:  # every round before was kept when it was answered, and parties kept nothing of this one
                break
            state, self.done = model.update(state, answer), self.done + 1
            if not all(np.isfinite(array).all() for array in state.values()):
                raise Diverged(self.done)
            if judged and self._by_loss:
                state = self._asked_before(HELD_OUT, state)
            if judged:
                mark = self._judge(state, mark)
            if keep:
                self.keep(state)
            self.rounds.watch.trained(self.done, total)
        return self._best_or(state)

    def keep(self, state: State) -> None:
        """Writes a checkpoint."""
        store = self.rounds.store
        facts = {"serial": self.rounds.serial, "numbers": self.rounds.numbers}
        store.keep_state(CHECKPOINT, state, {**facts, "rounds": self.done, "history": list(self.stopping.history)})
        store.forget_asked()
        self._kept_at = time.monotonic()

    def keep_is_due(self) -> bool:
        """Whether to write a checkpoint now: every few seconds, and after every round that a budget pays for."""
        return self.rounds.questions.paid or time.monotonic() - self._kept_at > SECONDS_BETWEEN_KEEPS

    def _conduct(self, state: State) -> State:
        """Counts rounds where the parties open the sums and train. The coordinator's state does not change."""
        total = self.stopping.choice.rounds
        while self.done < total:
            keep = self.keep_is_due() or self.done + 1 == total
            self.rounds.ask(TRAIN, state, keep=keep)
            self.done += 1
            if keep:
                self.keep(state)
            self.rounds.watch.trained(self.done, total)
        return state

    def _asked_before(self, question: str, state: State) -> State:
        """Returns the state that the next question is about: the state of before, if it was asked before this start.

        A party answers a number again about the very same bits only, and arithmetic may move a last digit. So they are on
        disk before anybody is asked, until a checkpoint holds what came of it.
        """
        store, number, model = self.rounds.store, self.rounds.numbers.get(question, 0), self.rounds.agreement.model
        if (kept := store.kept_asked(question, number)) is not None:
            return {**state, **kept}
        store.keep_asked(question, number, state if model.party_models else model.for_party(state, ""))
        return state

    def _afforded(self, state: State, *, keep: bool) -> Answer | None:
        """Returns the next answer, or None if a party's budget does not pay for it."""
        try:
            return self.rounds.ask(TRAIN, state, keep=keep)
        except NoBudgetLeft:
            self.exhausted = True
            return None

    def _judge(self, state: State, mark: State) -> State:
        """Measures what decides about stopping. Held-out loss is a question like any other."""
        public, store = self.rounds.agreement.model.for_party(state, ""), self.rounds.store
        loss = self.rounds.ask(HELD_OUT, state, keep=True) if self._by_loss else None
        value = perplexity_from_answer(loss) if loss else relative_change(mark, public)
        row = (self.rounds.serial, self.stopping.choice.stop, value)
        store.later("INSERT OR REPLACE INTO losses VALUES (?, ?, ?)", *row)
        if self.stopping.note(value) and self._by_loss:
            store.keep_state(BEST, state, {"serial": self.rounds.serial})
        return public

    def _best_or(self, state: State) -> State:
        best = self.rounds.store.kept_state(BEST) if self._by_loss else None
        return best[0] if best else state


def start(rounds: Rounds, vocabulary: Sequence[str]) -> State:
    """Returns the state that the training starts from. The plan's public seed decides it."""
    return rounds.agreement.model.start(vocabulary, np.random.default_rng(rounds.agreement.plan.seed))
