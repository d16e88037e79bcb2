"""The coordinator: it takes a run through its phases with a set of parties that it cannot see into. It holds no document.

It knows what the answers tell it and nothing else, and keeps that in its own store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import numpy as np

from securetm.contracts import Answer, Entropy, State
from securetm.data_classes import dataclass, replace
from securetm.entropy import OperatingSystem
from securetm.errors import SecuretmError
from securetm.federation.coordinator.hidden_words import take_words, told_words
from securetm.federation.coordinator.rounds import Attendance, PartyRefused, Rounds
from securetm.federation.coordinator.training import BEST, CHECKPOINT, TrainingPhase, start
from securetm.federation.coordinator.words import message_of, new_words, recall_words, tell_words, words_of_before
from securetm.federation.folder import LATE, RESULT, RunFolder
from securetm.federation.limits import ROOM
from securetm.federation.questions import COHERENCE, HELD_OUT, TOP_WORDS, TRAIN, Questions, cohort_size
from securetm.federation.refusal_errors import QuestionNotAllowed
from securetm.federation.shared_words import bytes_of_names
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import FewPasses, Parties, RecordedParties, RecordingWatch, Transcript, Watch
from securetm.federation.wire import wire
from securetm.models.quality import diversity, top_words
from securetm.models.questions.model_quality import npmi_from_answer, perplexity_from_answer
from securetm.plans.agreement import Agreement
from securetm.plans.schema import TrainingChoice
from securetm.sessions.survivors import SurvivorsMissing
from securetm.stages import Stages, Unwatched

ENDED = "ended"  # in the coordinator's store: what it ended with


@dataclass(frozen=True)
class Trained:
    """What the coordinator ends with. Every figure in it came from an answer or from public facts."""

    state: State
    vocabulary: tuple[str, ...]
    rounds: int
    quality: Mapping[str, float]
    stopped: str = "rounds"  # what ended the training: rounds, epochs, weights, held_out or budget


@dataclass
class Coordinator(Rounds):
    """Runs one session from invitation to assessment; called again on the same store it goes on where it was."""

    _disallowed: bool = False  # whether a party's policy refused a question about the finished model

    def run(self) -> Trained:
        kept, facts = self._kept()
        recall_words(self)
        self.store.forget_after(self.serial)  # later rounds will be run again
        self.invite()
        vocabulary = words_of_before(self) or new_words(self)
        tell_words(self, vocabulary)
        state = start(self, vocabulary) if kept is None else kept
        choice = followed(self.questions, state, self.members, self.documents)
        training = TrainingPhase(self, choice, facts["history"], int(facts["rounds"]), bool(facts.get("unjudged")))
        if kept is None:
            training.keep(state)
        state = training.run(state)
        quality = self.assess(state)
        if self.questions.paid:
            self.ledgers.deliver(self._here(), self._told_soon if self.few else None)
        ended: dict[str, Any] = {"rounds": training.done, "quality": quality, "stopped": training.ended_by}
        self.store.put(ENDED, json.dumps(ended).encode())  # parties that have the model may never come back
        self.hand_out(state, training.done)
        return Trained(state, told_words(self, vocabulary), **ended)

    def ended_before(self) -> Trained | None:
        """Returns what the training ended with before this start; nothing if it has not ended. It asks nobody."""
        ended, state = self.store.get(ENDED), self._last_state()
        if not ended or state is None:
            return None
        return Trained(state, told_words(self, words_of_before(self)), **json.loads(ended))

    def _last_state(self) -> State | None:
        """Goes to the last checkpoint. Returns its state, or the best one where the plan stops by the held-out loss."""
        kept, _ = self._kept()
        best = self.store.kept_state(BEST) if self.agreement.plan.training.stop == HELD_OUT else None
        return best[0] if best else kept

    def _kept(self) -> tuple[State | None, Mapping[str, Any]]:
        """Goes to the last checkpoint, and returns its state and its facts."""
        kept = self.store.kept_state(CHECKPOINT)
        facts: dict[str, Any] = kept[1] if kept else {"serial": 0, "numbers": {}, "rounds": 0, "history": []}
        self.serial, self.numbers = int(facts["serial"]), dict(facts["numbers"])
        self.kept = self.serial
        self.remembered = dict(facts.get("remembered", dict.fromkeys(self.members, self.serial)))
        return kept[0] if kept else None, facts

    def hand_out(self, state: State, rounds: int, to: Collection[str] = ()) -> list[str]:
        """Tells these parties, or all, that the training has ended, and what came of it. Returns those that took it."""
        told = {} if self.parties_open else self.questions.finished(state)
        finish = wire.pack_request(self.session, wire.Finish(told, rounds))
        taken, tells = [], self.agreement.plan.vocabulary.told_at_the_end
        if tells:  # a reply then holds the words
            self._most = max(self._most, ROOM + bytes_of_names(len(self.questions.vocabulary)))
        for member, accepted in self._accepting(dict.fromkeys(to or self.members, finish)):
            taken.append(member)
            if tells:
                take_words(self, member, accepted.parcels)
            self.store.keep_handed_out(taken)
        return taken

    def hand_out_again(self, rounds: int, late: Collection[str]) -> list[str]:
        """Hands the model of a run that has ended to parties that were away. It asks nothing of their documents."""
        state, words = self._last_state(), words_of_before(self)
        self.questions.adopt(words)
        if state is None:
            return []
        invited = dict(self._accepting({m: self._invitation(self._resumed_from(m)) for m in late}))
        if not self.parties_open:  # a party that missed the last kept round
            invited |= self._accepting({m: self._invitation(0) for m in late if m not in invited})
        adopted = dict(self._accepting(dict.fromkeys(invited, wire.pack_request(self.session, message_of(words)))))
        return self.hand_out(state, rounds, adopted) if adopted else []

    def _accepting(self, requests: Mapping[str, bytes]) -> Iterator[tuple[str, wire.Accepted]]:
        """Yields the parties that accept their message, with what they said. One that does not stops nobody."""
        for member, reply in self._wave(requests) if requests else ():
            with suppress(SecuretmError):
                if (accepted := self._accepted(member, reply)) is not None:
                    yield member, accepted

    def assess(self, state: State) -> dict[str, float]:
        """Returns the quality of the finished model, as far as a coordinator may know it."""
        if self.parties_open:
            self._measured(HELD_OUT, state)  # only the parties learn the answer
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
        """Asks for a figure that the run can do without, if a party does not allow it, or never comes back after a crash."""
        if self._disallowed:  # parties are at different rounds since
            return None
        try:
            return self.ask(question, state)
        except SurvivorsMissing:
            if not self.attendance.goes_on_without:
                raise
        except PartyRefused as refused:
            if refused.reason != QuestionNotAllowed.__name__:
                raise
            self._disallowed = True
        return None


@contextmanager
def coordinator_of(
    folder: RunFolder,
    parties: Parties,
    attendance: Attendance,
    make: Callable[..., Coordinator] = Coordinator,
    *,
    told: Watch | None = None,
    stages: Stages | None = None,
    title: str = "",  # of the stage of training
    arrivals: Mapping[str, float] | None = None,
    only_present: bool = False,
    few: FewPasses | None = None,
    entropy: Entropy | None = None,
) -> Iterator[Coordinator]:
    """The coordinator of a new session over the store and the transcript of this run, at its last checkpoint."""
    agreement, told = folder.agreement, told or Watch()
    ended = (folder.path / RESULT).is_file()
    transcript = Transcript(folder.path / (LATE if ended else "transcript"), with_content=folder.with_content)
    store = CoordinatorStore(folder.coordinator)
    kept = store.kept_state(CHECKPOINT)
    transcript.forget_after(int(kept[1]["serial"]) if kept else 0)
    channel = agreement.profile.aggregation.channel
    recorded = RecordedParties(parties, transcript, channel, told, {} if arrivals is None else arrivals, only_present, few)
    watch = RecordingWatch(transcript, told, stages or Unwatched(), title)
    made = folder.members, agreement, recorded, store, entropy or OperatingSystem(), watch, folder.keys
    with closing(store), closing(transcript):
        yield make(*made, attendance, folder.holds, few=None if few is None else recorded)


def followed(questions: Questions, state: State, members: Sequence[str], documents: int) -> TrainingChoice:
    """Returns the plan's [training] with the number of rounds that its epochs are, at most those that it allows."""
    choice = questions.agreement.plan.training
    if not choice.epochs:
        return choice
    batch = questions.make(TRAIN, questions.shown(TRAIN, state, members[0])).terms.batch
    return replace(choice, rounds=min(choice.rounds, rounds_of(questions.agreement, batch, len(members), documents)))


def rounds_of(agreement: Agreement, batch: int, parties: int, documents: int) -> int:
    """Returns how many rounds read every training document as often as the plan says. A batch of 0 is all documents."""
    choice, model = agreement.plan.training, agreement.model
    if not batch:
        return max(1, math.ceil(choice.epochs / model.epochs_per_round))
    trained_on = documents * (1 - choice.held_out)
    return max(1, math.ceil(choice.epochs * trained_on / (batch * cohort_size(parties, agreement))))
