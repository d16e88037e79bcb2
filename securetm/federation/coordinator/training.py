"""The coordinator's training: one question, one answer, one update, until the plan says that it is enough.

It decides when to stop from public facts and answers, never from a party's own figures.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from securetm.contracts import Answer, State
from securetm.data_classes import dataclass, field
from securetm.federation.coordinator.rounds import NewSessionWanted, NoBudgetLeft, Rounds
from securetm.federation.questions import HELD_OUT, PAIRS, TRAIN, Diverged, before_training, is_finite
from securetm.federation.store import read_arrays
from securetm.models.questions.model_quality import perplexity_from_answer
from securetm.plans.schema import TrainingChoice
from securetm.sessions.survivors import SurvivorsMissing

SECONDS_BETWEEN_KEEPS = 2.0
CHECKPOINT, BEST, MARK, ASKED = "checkpoint", "best", "mark-{}", "asked-{}-{}"
WEIGHTS = "weights"  # of STOPS in a plan


def settled(choice: TrainingChoice, history: Sequence[float]) -> bool:
    """Whether the last `patience` values of what should fall improved on the best before by no more than the tolerance."""
    if len(history) <= choice.patience:
        return False
    best, recent = _least(history[: -choice.patience]), _least(history[-choice.patience :])
    return recent >= best * (1 - choice.tolerance)


@dataclass
class TrainingPhase:
    """The training of one run, from a kept state or from the start."""

    rounds: Rounds
    choice: TrainingChoice
    history: list[float] = field(default_factory=list)  # of the measure that decides about stopping
    done: int = 0
    unjudged: bool = False  # whether the measure of the last round is still to be taken
    exhausted: bool = False  # whether a party's budget ended it
    _kept_at: float = 0.0
    _mark: State = field(default_factory=dict)  # the weights when they were looked at last

    def __post_init__(self) -> None:
        self._by_loss = self.choice.stop == HELD_OUT

    @property
    def ended_by(self) -> str:
        choice, allowed = self.choice, self.rounds.agreement.plan.training.rounds
        if self.exhausted or self._asked() < choice.rounds:
            return "budget" if self.exhausted else choice.stop
        return "epochs" if choice.rounds < allowed else "rounds"

    def run(self, state: State) -> State:
        """Trains, and returns the last state; or the best one, where the plan stops by the held-out loss."""
        if self.rounds.parties_open:
            return self._conduct(state)
        self._mark = self._last_mark(state)
        if self.unjudged:
            state = self._judged(state)
        while self._asked() < self.choice.rounds and not settled(self.choice, self.history) and not self.exhausted:
            state = self._round(state)
        best = self.rounds.store.kept_state(BEST) if self._by_loss else None
        return best[0] if best else state

    def _round(self, state: State) -> State:
        """Runs one round, and returns the state after it. Where no answer can be had, it is the state before."""
        judged = self.choice.stop != "rounds" and (self.done + 1) % self.choice.every == 0
        keep = self.keep_is_due() or self._asked() + 1 == self.choice.rounds or judged
        asks_twice = judged and self._by_loss
        state = self._asked_before(TRAIN, state)
        # Parties hold two kept rounds, so a step keeps once, after its last question, unless all that was asked is kept.
        answer = self._answer(TRAIN, state, keep=keep and (self._keeps_all or not asks_twice))
        if answer is None:
            return state
        state, self.done = self.rounds.agreement.model.update(state, answer), self.done + 1
        if not is_finite(state):
            raise Diverged(self.done)
        self.unjudged = judged
        if asks_twice and self._keeps_all:
            self.keep(state)
        return self._judged(state) if judged else self._ended(state, keep=keep)

    def _ended(self, state: State, *, keep: bool) -> State:
        self.unjudged, total = False, self.choice.rounds
        if keep:
            self.keep(state)
        self.rounds.watch.trained(self.done, total)
        if keep and self._asked() < total:
            self.rounds.take_in()
        return state

    @property
    def _keeps_all(self) -> bool:
        """Whether what came of each question is on disk before the next one is asked.

        Where parties may be missing, a question that is asked again may be answered by others, or by nobody. What was asked
        after it would then be about another state, and parties answer a number about one state only. So nothing is.
        """
        return self.rounds.attendance.goes_on_without

    def _answer(self, question: str, state: State, *, keep: bool) -> Answer | None:
        """Returns the answer to that question; nothing if a budget is spent, or if parties that answered it before are gone."""
        try:
            return self.rounds.ask(question, state, keep=keep)
        except NoBudgetLeft:  # every round before was kept when it was answered, and parties kept nothing of this one
            self.exhausted = True
        except SurvivorsMissing:  # of a crash while it was answered, so nobody opens this sum again
            if not self._keeps_all:
                raise
            if question == TRAIN:
                self.keep(state)  # under the next number
        return None

    def _conduct(self, state: State) -> State:
        """Counts rounds where the parties open the sums and train. The coordinator's state does not change."""
        total = self.choice.rounds
        while self._asked() < total:
            keep = self.keep_is_due() or self._asked() + 1 == total
            try:
                self.rounds.ask(TRAIN, state, keep=keep)
            except SurvivorsMissing as missing:
                if not self._keeps_all:
                    raise
                self.rounds.serial = self.rounds.kept  # nobody opens that sum again: the parties go back to before it
                self.keep(state)
                raise NewSessionWanted() from missing
            self.done += 1
            if keep:
                self.keep(state)
            self.rounds.watch.trained(self.done, total)
        return state

    def _asked(self) -> int:
        """Returns how many rounds were asked for, skipped ones included: parties answer no more than the plan says."""
        return max(self.done, self.rounds.numbers.get(TRAIN, 0))

    def keep_is_due(self) -> bool:
        """Whether to write a checkpoint now: every few seconds; every round where a budget pays, or rounds take long anyway."""
        slow = self.rounds.few is not None or self.rounds.questions.paid
        return self._keeps_all or slow or time.monotonic() - self._kept_at > SECONDS_BETWEEN_KEEPS

    def keep(self, state: State) -> None:
        rounds = self.rounds
        asked = {"serial": rounds.serial, "numbers": rounds.numbers, "remembered": rounds.remembered}
        came = {"rounds": self.done, "history": self.history, "unjudged": self.unjudged}
        rounds.store.keep_state(CHECKPOINT, state, asked | came)
        rounds.watch.kept(self.done)
        rounds.store.drop_states(ASKED.format("*", "*"))
        self._kept_at, rounds.kept = time.monotonic(), rounds.serial

    def _asked_before(self, question: str, state: State) -> State:
        """Returns the state that the next question is about: the kept one, if the question was asked before this start.

        A party answers a number again about the very same bits only, and arithmetic may move a last digit. So they are on
        disk before anybody is asked, until a checkpoint holds the state after the answer.
        """
        if self.rounds.kept == self.rounds.serial:
            return state
        store, number, model = self.rounds.store, self.rounds.numbers.get(question, 0), self.rounds.agreement.model
        if (kept := store.kept_state(ASKED.format(question, number))) is not None:
            return {**state, **kept[0]}
        store.keep_state(ASKED.format(question, number), state if model.party_models else model.for_party(state, ""), {})
        return state

    def _judged(self, state: State) -> State:
        """Ends a round with the measure that decides about stopping. Held-out loss is a question like any other."""
        public, store = self.rounds.agreement.model.for_party(state, ""), self.rounds.store
        if self._by_loss:
            state = self._asked_before(HELD_OUT, state)
            if (loss := self._answer(HELD_OUT, state, keep=True)) is None:
                return self._ended(state, keep=True)
            value = perplexity_from_answer(loss)
        else:
            value = relative_change(self._mark, public)
        row = (self.rounds.serial, self.choice.stop, value)
        store.later("INSERT OR REPLACE INTO losses VALUES (?, ?, ?)", *row)
        self.history.append(value)
        if self._by_loss and value <= _least(self.history):  # never true of what is not a number
            store.keep_state(BEST, state, {"serial": self.rounds.serial})
        self._keep_mark(public)
        return self._ended(state, keep=True)

    def _last_mark(self, state: State) -> State:
        """Returns the weights at the last look, also where a session before this one looked; else those of this state."""
        public, every = self.rounds.agreement.model.for_party(state, ""), self.choice.every
        if self.choice.stop != WEIGHTS:
            return public
        kept = self.rounds.store.kept_state(MARK.format(self.done - self.done % every))
        if kept is None:
            self._keep_mark(public)
        return kept[0] if kept else public

    def _keep_mark(self, public: State) -> None:
        """Keeps the weights of this look on disk, and those of the look before: the checkpoint may still stand between them."""
        self._mark, store, every = public, self.rounds.store, self.choice.every
        if self.choice.stop == WEIGHTS:
            store.keep_state(MARK.format(self.done), public, {})
            store.drop_states(MARK.format(self.done - 2 * every))


def start(rounds: Rounds, vocabulary: Sequence[str]) -> State:
    """Returns the state that the training starts from: by public facts, and by a first answer where the plan asks for one.

    A run that is killed before it kept this state asks again.
    """
    agreement = rounds.agreement
    told = None if agreement.model.needs_public else rounds.frequencies  # those models read what every party can know alone
    if PAIRS not in before_training(agreement):
        return agreement.start(vocabulary, told)
    return agreement.start_after(vocabulary, rounds.ask(PAIRS, {}, keep=True), told)


def relative_change(before: State, after: State) -> float:
    """Returns how far the weights moved, as a share of their length (the stopping measure of gFedNTM)."""
    weights = [name for name, array in after.items() if array.dtype.kind == "f"]
    moved = sum(float(np.sum((after[name].astype(float) - before[name]) ** 2)) for name in weights)
    length = sum(float(np.sum(before[name].astype(float) ** 2)) for name in weights)
    return float(np.sqrt(moved / max(length, 1e-300)))


def _least(values: Sequence[float]) -> float:
    return min((value for value in values if not math.isnan(value)), default=math.inf)


def rounds_kept(folder: Path) -> int:
    """Returns after how many rounds the coordinator of this folder wrote its last checkpoint."""
    path = folder / f"{CHECKPOINT}.safetensors"
    return int(read_arrays(path)[1]["rounds"]) if path.is_file() else 0
