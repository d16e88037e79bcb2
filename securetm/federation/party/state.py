"""What a party holds in every phase: its documents, its store, its agreement, and its memory of the training.

It is checked when the party starts, against the party's own files alone.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from securetm.accounting.ledger import Ledger
from securetm.answers.block_answers import IN_PROCESS
from securetm.contracts import IN_MEMORY, Answer, Array, Engine, Entropy, Keeping, Memory, State, Store
from securetm.corpus.corpus import Corpus
from securetm.data_classes import dataclass, field
from securetm.errors import Failed, Mistake, Refused
from securetm.federation.budget.witness import TAG
from securetm.federation.document_minimum import (
    by_shard,
    check_blocks,
    check_delta,
    check_kind,
    check_share,
    others_hold,
    units_of,
)
from securetm.federation.limits import RequestLimits
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.party.failure_log import Failure, FailureLog
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import HELD_OUT, MARKS, TRAIN, WORDS_KEY, Diverged, Questions, is_finite
from securetm.federation.refusal_errors import BadState
from securetm.federation.shared_words import OpenedWords
from securetm.federation.store import SqliteStore
from securetm.models.public_knowledge import without_public
from securetm.models.questions.model_quality import perplexity_from_answer
from securetm.plans.agreement import Agreement
from securetm.plans.party_file import PolicyChoice

_MINE = "learned/"  # in the party's memory, beside what its model remembers
_ROUNDS = "rounds learned"
_PAID = struct.Struct(">32sQ32s")  # which ledger, how many entries it had, and the digest that commits to them
_DRAWN = "drawn once: "  # in the store, beside what the party signed of other ledgers


class PartyWatch:
    """Is told what a party does, for its own user; this one shows nothing. Nobody else hears it."""

    def answered(self, question: str, number: int, serial: int, sent: int) -> None:
        """Called when the first messages of an answer are ready, with how many bytes they have."""

    def refuses(self, refusal: Refused) -> None:
        """Called when the party refused a message. The name travels, the sentence and what to do stay here."""

    def failed(self, failure: Failure) -> None:
        """Called with a failure of the party's own, which no reply shows."""


@dataclass
class PartyState:
    """One organisation: its documents, its own store, and the agreement that it accepted."""

    name: str
    members: tuple[str, ...]
    agreement: Agreement
    corpus: Corpus
    store: PartyStore
    entropy: Entropy
    keys: Mapping[str, bytes] = field(default_factory=dict)
    ledger: Ledger | None = None
    others: SqliteStore | None = None  # what it signed of the others' ledgers, kept as long as its own
    run: str = ""  # what this party calls the run in its ledger; it stays the same when the run is resumed
    simulated: bool = False  # on one machine with all others, where names do not say whose documents a party has
    policy: PolicyChoice = field(default_factory=PolicyChoice)  # what this party allows beyond the agreement
    holds: Mapping[str, int] = field(default_factory=dict)  # of documents or persons, by the roster: each party at least
    ledger_tag: bytes = bytes(TAG)  # names the data set of the ledger to the others, who cannot read the name in it
    watch: PartyWatch = field(default_factory=PartyWatch)
    engine: Engine = IN_PROCESS  # that answers blocks of documents; nothing that is sent says which
    clock: Callable[[], float] = time.perf_counter  # it decides nothing here: `reply_times.py` reads what it measured
    seconds_with_documents: float = 0.0  # of the last answer

    def __post_init__(self) -> None:
        profile = self.agreement.profile
        check_share(self.name, self.corpus, profile, self.members)
        units = units_of(self.corpus, self.agreement.unit) + others_hold(self.name, self.holds, profile, self.members)
        check_delta(self.name, units, profile, *([self.ledger.budget.delta] if self.ledger is not None else []))
        check_kind(self.corpus, self.agreement)
        if self.ledger is None or (profile.budget is not None and self.others is None):
            raise Mistake(
                "{party} has no ledger to enter what it releases under profile {profile!r}",
                hint="give the party its ledger; without one nobody knows what was released before",
                party=self.name,
                profile=profile.name,
            )
        self.corpus = self.corpus.in_blocks()
        check_blocks(self.name, self.corpus, self.agreement)
        self.keeps_on_disk = by_shard(self.corpus)  # what the model remembers of each block
        self.documents, self.failure_log = PartyDocuments(self.corpus), FailureLog(self.store, self.watch.failed)
        self.questions = Questions(self.agreement, key=self.store.get(WORDS_KEY) or b"")
        self.limits = RequestLimits(self.members, self.questions)
        self.drawn = KeptNoise(self.others, self.ledger) if self.others is not None else None
        self.finished: int | None = None  # after how many rounds the training ended; None while it goes on
        self.computed: dict[str, Any] = {}  # by mechanisms, for the next round
        opens = profile.aggregation.opened_by == "parties"
        hidden = OpenedWords(self.agreement.plan.vocabulary, self.questions.buckets)
        self.learner = Learner(self.agreement, self.store, hidden) if opens else None

    def keeping(self, serial: int, round_id: bytes) -> Keeping:
        """Returns how blocks keep what the model remembers of them after the answer to this round."""
        if not self.keeps_on_disk:
            return IN_MEMORY
        return self.store.keeping(f"{serial:08d}-{round_id.hex()[:16]}", self.entropy)

    def close(self) -> None:
        self.store.close()
        for opened in (self.ledger, self.others):
            if opened is not None:
                opened.close()


@dataclass
class KeptNoise:
    """A lasting store (contracts.RoundContext) that takes and returns only noise that this ledger paid for."""

    store: Store
    ledger: Ledger
    paid: bool = False  # whether the answer under way was charged for noise that is drawn once

    def get(self, key: str) -> bytes | None:
        """Returns what was drawn under that name. Refuses if the ledger was put back to before the payment."""
        stored = self.store.get(self._name(key))
        if stored is None:
            return None
        ledger, count, head = _PAID.unpack(stored[: _PAID.size])
        if ledger != self.ledger.identity:  # another ledger paid for it
            return None
        self.ledger.check_against(count, head)
        return stored[_PAID.size :]

    def put(self, key: str, value: bytes) -> None:
        """Writes the noise to disk before it returns, bound to the entry that paid for it."""
        if not self.paid:
            raise Failed(
                "noise was to be drawn before it was charged",
                hint="a mechanism that draws once must remember what it drew, for the documents that reach it",
            )
        count, head = self.ledger.head
        self.store.put(self._name(key), _PAID.pack(self.ledger.identity, count, head) + value)

    def _name(self, key: str) -> str:
        return f"{_DRAWN}{self.ledger.identity.hex()} {key}"


@dataclass
class Learner:
    """The shared model as one party holds it, and before it what sums of hidden words showed."""

    agreement: Agreement
    store: PartyStore
    hidden: OpenedWords
    rounds: int = 0  # whose answers it took
    state: State = field(default_factory=dict)  # all that came of the training

    def begin(self, vocabulary: tuple[str, ...], memory: Memory) -> None:
        """Starts the training at the plan's seed, or goes on from the party's kept memory."""
        self.state = learned_in(memory) or self.agreement.start(vocabulary)
        self.rounds = int(memory[_ROUNDS][0]) if _ROUNDS in memory else 0

    def about(self, question: str) -> State:
        """Returns the state that this question is about."""
        if question == MARKS:
            return self.hidden.about_marks()
        if not self.state:
            raise BadState("no vocabulary has been agreed on")
        return without_public(self.agreement.model.for_party(self.state, ""))

    def learn(self, question: str, answer: Answer) -> None:
        """Takes an opened answer: updates the state, or writes a figure. A state that diverged is not taken over."""
        if question == TRAIN:
            state, self.rounds = self.agreement.model.update(self.state, answer), self.rounds + 1
            if not is_finite(state):
                raise Diverged(self.rounds)
            self.state = state
        elif question == HELD_OUT:
            figure = perplexity_from_answer(answer)
            self.store.keep_figures("everybody", {"held_out": figure})
        else:
            self.hidden.take(question, answer)

    def remember(self, memory: Memory) -> Mapping[str, Array]:
        """Returns the memory to keep, with the state in it and the number of its rounds."""
        learned = {_MINE + name: array for name, array in self.state.items()}
        return {**memory, **learned, _ROUNDS: np.array([self.rounds], np.int64)}


def learned_in(memory: Mapping[str, Array]) -> State:
    """Returns the shared model from a party's kept memory; empty if there is none."""
    return {name.removeprefix(_MINE): array for name, array in memory.items() if name.startswith(_MINE)}
