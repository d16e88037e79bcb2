"""Sends messages that violate the protocol to the parties of a real run, and records which party refuses what, and how.

A malicious coordinator sends its own messages, changed on their way to one party. The coordinator is tested as well: a channel
between it and a party changes a message that the party signed. This module implements no protocol and attacks no document. The
claims about an active coordinator rest on these refusals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from securetm.aggregation.masked.messages import Kind
from securetm.auditing.demonstration import Demonstrations
from securetm.auditing.forged_messages import (
    ANSWERED,
    Forged,
    another_vector,
    false_lists,
    heads_of_ledgers,
    invitations,
    outcome_in,
    questions,
    second_lists,
    signatures_without,
    without,
)
from securetm.auditing.forked_ledger import ForkedLedger
from securetm.auditing.refusal_record import EVERY_PARTY, RefusalRecord
from securetm.contracts import Answer, Exchange, Roster, State
from securetm.errors import Refused, SecuretmError
from securetm.federation.budget.witness import head_of
from securetm.federation.coordinator.common_words import tell_words
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.folder import RunFolder
from securetm.federation.party.words import message_of
from securetm.federation.paying_errors import NoBudgetLeft, OutOfBudget
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.running_errors import PartyRefused
from securetm.federation.transcript import Parties
from securetm.federation.wire import wire
from securetm.models.neural.network_shape import NetworkShape
from securetm.plans.profiles import claims_of, cohort_of
from securetm.sessions.framing import Reader
from securetm.sessions.identities import COORDINATOR

_ROUNDS = 2  # messages of the first are replayed in the second
_RUN: Mapping[str, Any] = {
    "model.name": "prodlda",
    "model.batch": 50,
    "model.n_topics": 5,
    "model.hidden": 16,
    "training.rounds": _ROUNDS,
    "vocabulary.source": "file",
    "vocabulary.max_words": 500,
}
_BUDGET: Mapping[str, Any] = {"privacy.epsilon": 2.0}  # enough for these rounds and no more
_ALIKE = "weights of 3e38 for some words: a reply that tells whose documents have them"
_EVERY = 4  # one word in so many
_LARGEST = 3e38  # near the largest number of 32 bits
_APART = "another list of survivors for one party than for the others"
_STALE = "what others signed of a ledger before the last invitation"
_CARRIED_ON = "a round from before the last invitation, carried on"
_OTHER_VECTOR = "another vector behind what a party signed, put there on the way"
_ONE_COHORT = "cannot show parties different cohorts"


def tried_violations(
    profile: str, runs: Demonstrations, settings: Mapping[str, Any] | None = None
) -> tuple[RefusalRecord, ...]:
    """Every violation that applies to this profile, with its outcome. Those that were answered come first.

    `settings` are settings of the run, for documents other than the public ones.
    """
    violations = Violations()
    try:
        runs.run(profile, {**_RUN, **_BUDGET, **(settings or {})}, corruption=violations)
    except SecuretmError:
        if all(one.refused or one.reason for one in violations.tried):  # a violation that was answered may end the run
            raise
    return tuple(sorted(violations.tried, key=attrgetter("refused")))


@dataclass(frozen=True)
class Violations:
    """The violations of one run (a `Corruption`), and their record."""

    tried: list[RefusalRecord] = field(default_factory=list)

    def named(self) -> Mapping[str, Any]:
        """What distinguishes such a run from others."""
        return {"lie": "refused moves"}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """The coordinator that takes the place of the honest one."""
        forked = ForkedLedger(folder, folder.members[1])  # the first party gets the forged messages
        return {"coordinating": partial(ViolatingCoordinator, violations=self, forked=forked)}


@dataclass
class ViolatingCoordinator(Coordinator):
    """Follows the protocol, but sends forged messages to one party as well, and asks forbidden questions at the end."""

    violations: Violations = field(default_factory=Violations)
    forked: ForkedLedger | None = None
    _swapped: bool = False
    _first: tuple[int, State] | None = None  # of the first round of training: serial and state

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parties = self._channel = _TamperingChannel(self.parties, self)

    def assess(self, state: State) -> dict[str, float]:
        """Asks forbidden questions instead of judging its model."""
        if self.blind:  # then the parties judge their model
            return super().assess(state)
        asked = self._begin_again()
        other = {**asked, "weights": asked["weights"] * 2}
        self._asked("a question that was answered, about other weights after another invitation", other)
        if self.questions.paid:
            self._begin_again()
            self._asked("one question more than the budget reaches", asked)  # the same question again: the plan has no other
        else:
            self._look_at_replies(state)
            self._asked_again(state)
        self.numbers[TRAIN] = self.agreement.plan.training.rounds
        self._asked("one round more than the plan has", state)
        return {}

    def ask(self, question: str, state: State, *, keep: bool = False) -> Answer:
        """Remembers the first round of training."""
        if question == TRAIN and self._first is None:
            self._first = self.serial + 1, state
        return super().ask(question, state, keep=keep)

    def _begin_again(self) -> State:
        """Goes back to before the first round, as after a restart, and sends other words to the first party."""
        words, victim = self.questions.vocabulary, self.members[0]
        assert self._first is not None  # it has trained
        self.serial, self.numbers[TRAIN] = self._first[0] - 1, 0
        self.tell(wire.Invite(self.agreement.digest, self.agreement.profile.digest, self.members, 0))
        if self.masked and self._channel.forwarded:
            self._channel.try_once(_CARRIED_ON, victim, self._channel.forwarded)
        if (asked := self._channel.asked) is not None and asked.witnesses:
            self._channel.try_once(_STALE, victim, wire.pack_request(self.session, wire.Links(asked.witnesses)))
        other = wire.pack_request(self.session, message_of(words[:-1]))
        self._channel.try_once("another list of words, after another invitation", victim, other)
        tell_words(self, words)
        return self._first[1]

    def _look_at_replies(self, state: State) -> None:
        """Sends weights that overflow for some words. A reply unlike the others would show whose documents have these words."""
        weights = np.array(state["weights"])
        hidden, topics = int(self.agreement.plan.model.settings["hidden"]), len(self.agreement.model.topics(state))
        layers = NetworkShape.of(weights, hidden, topics).views(weights)
        layers["words"][::_EVERY] = _LARGEST
        layers["inner"][...] *= 1e4  # so the numbers of these words overflow, and those of other words do not
        with suppress(PartyRefused):
            self.ask(HELD_OUT, {**state, "weights": weights})
        replies = set(self._channel.answers.values())
        alike = len(replies) == 1 and all(how == ANSWERED for how, _ in replies)
        self.noted(_ALIKE, *((EVERY_PARTY, "an answer like all others") if alike else ()))

    def _asked_again(self, state: State) -> None:
        """Asks the last question again without one party. Two exact sums would show that party's answer."""
        if self.masked:
            self.numbers[TRAIN] -= 1
            self.store.now("DELETE FROM store WHERE key LIKE 'survivors %'")  # an honest one keeps the list that it named
            self._channel.silent = self.members[-1]
            self._asked("the same question once more, over the others alone as if one party had dropped out", state)
        self.numbers[TRAIN] -= 1
        self.members = self.members[: max(self.agreement.profile.minimum_parties, len(self.members) - 1)]
        self._asked("the same question for a cohort without one party", state)

    def _asked(self, attempt: str, state: State) -> None:
        try:
            self.ask(TRAIN, state)
        except PartyRefused as refused:
            self.noted(attempt, refused.party, refused.reason)
        except NoBudgetLeft as refused:
            self.noted(attempt, refused.party, OutOfBudget.__name__)
        else:
            self.noted(attempt)

    @property
    def masked(self) -> bool:
        """Whether the parties learn who survived a round."""
        return self.agreement.profile.aggregation.names_survivors

    def noted(self, attempt: str, by: str = "", reason: str = "") -> None:
        """Records one violation: the role that refused it, or else that the profile makes no claim about it."""
        profile = self.agreement.profile
        if attempt == _APART and not by:
            claimed = claims_of(profile, cohort_of(profile, self.members))
            if (_ONE_COHORT, COORDINATOR) not in [(claim.what, claim.against) for claim in claimed]:
                reason = f"the profile does not claim that a coordinator {_ONE_COHORT}"
        self.violations.tried.append(RefusalRecord(profile.name, attempt, 0, 0, bool(by), by, reason))

    def _took(self, exchange: Exchange, member: str, accepted: wire.Accepted | None) -> bool:
        """Replaces the first masked vector of a party by another one behind the party's signature."""
        parcels = accepted.parcels if accepted is not None else ()
        if self.masked and not self._swapped and parcels and Reader(parcels[0], member).kind == Kind.MASKED:
            self._swapped, reason = True, ""
            try:
                exchange.receive(member, another_vector(bytes(parcels[0])))
            except Refused as refused:
                reason = type(refused).__name__
            self.noted(_OTHER_VECTOR, COORDINATOR if reason else "", reason)
        return super()._took(exchange, member, accepted)


@dataclass
class _TamperingChannel:
    """Sends each forged message to the first party once, and the real messages to all parties."""

    parties: Parties
    coordinator: ViolatingCoordinator
    _seen: set[str] = field(default_factory=set)
    asked: wire.Ask | None = None  # of the previous round, which was answered
    _rounds: int = 0  # of the training
    forwarded: bytes = b""  # the last message of a round that the first party got
    silent: str = ""  # a party that is cut off
    answers: dict[str, tuple[str, int]] = field(default_factory=dict)  # to the last question: the kind of reply, and its length

    def ask(self, requests: Mapping[str, bytes], most: int = wire.MOST_BYTES) -> Iterator[tuple[str, bytes | memoryview]]:
        """Sends the requests, and forged ones before and after them."""
        requests = {member: message for member, message in requests.items() if member != self.silent}
        victim = next(iter(requests))
        session, body = wire.unpack_request(requests[victim])
        for attempt, forged in self._before(body, victim):
            self.try_once(attempt, victim, wire.pack_request(session, forged))
        if self._rounds == _ROUNDS and isinstance(body, wire.Forward) and self.coordinator.masked:
            requests = self._apart(requests, body)
        replies = dict(self.parties.ask(requests, most))
        for attempt, forged in self._after(body):
            self.try_once(attempt, victim, wire.pack_request(session, forged))
        if isinstance(body, wire.Forward):
            self.forwarded = requests[victim]
        if isinstance(body, wire.Ask):
            self.answers = {member: (_refusal_in(reply, member) or ANSWERED, len(reply)) for member, reply in replies.items()}
        if isinstance(body, wire.Ask) and body.question == TRAIN:
            self.asked, self._rounds = body, self._rounds + 1
        return iter(replies.items())

    def present(self) -> frozenset[str]:
        """Returns the parties that can be asked now."""
        return self.parties.present()

    def close(self) -> None:
        """Closes the channel."""
        self.parties.close()

    def try_once(self, attempt: str, victim: str, message: bytes) -> None:
        """Sends one forged message to one party, once in a run."""
        if attempt in self._seen:
            return
        self._seen.add(attempt)
        refusal = _refusal_in(dict(self.parties.ask({victim: message}, wire.MOST_BYTES))[victim], victim)
        self.coordinator.noted(attempt, victim if refusal else "", refusal)

    def _before(self, body: wire.Body, victim: str) -> Forged:
        if isinstance(body, wire.Invite):
            yield from invitations(body)
        if isinstance(body, wire.Witness):
            yield from heads_of_ledgers(body)
        if isinstance(body, wire.Ask) and body.question == TRAIN:
            yield from questions(body, self.asked, victim, self.coordinator.agreement.profile.minimum_parties)
        if isinstance(body, wire.Forward) and self.coordinator.masked:
            yield from false_lists(body, self.coordinator.members.index(victim))

    def _after(self, body: wire.Body) -> Forged:
        if isinstance(body, wire.Witness) and self.coordinator.forked:
            yield from _put_back(body, self.coordinator, self.coordinator.forked)
        if isinstance(body, wire.Forward) and self.coordinator.masked:
            yield from second_lists(body)

    def _apart(self, requests: Mapping[str, bytes], forward: wire.Forward) -> Mapping[str, bytes]:
        """Gives the last party another list of survivors than the others, in every message that has a list."""
        last, session = self.coordinator.members[-1], self.coordinator.session
        for outcome, rest, kind in outcome_in(forward):
            other = without(outcome, outcome.survivors[0])
            signed = signatures_without(rest, outcome.survivors[0])
            forged = wire.pack_request(session, replace(forward, parcel=other.body(kind) + signed))
            if kind == Kind.SURVIVORS:
                return {**requests, last: forged}
            self.try_once(_APART, last, forged)
        return {member: request for member, request in requests.items() if member != last}


def _put_back(witness: wire.Witness, coordinator: Coordinator, forked: ForkedLedger) -> Forged:
    """Copies a party's ledger at the first statements, and later shows the head of that copy, which was spent from."""
    if not witness.links:
        forked.copy()
        return
    (seen,) = (head.count for head in map(head_of, witness.heads) if coordinator.members[head.owner] == forked.owner)
    roster = Roster(coordinator.session, coordinator.agreement.profile.digest, coordinator.members, coordinator.keys)
    head, way = forked.shown(roster, seen)
    yield "a ledger that was put back and spent from elsewhere until it is longer", wire.Witness((head,), (way,))


def _refusal_in(reply: bytes | memoryview, party: str) -> str:
    """The name of the refusal in a reply, or nothing."""
    outcome = wire.unpack_reply(reply, party)[1]
    return outcome.name if isinstance(outcome, wire.Refusal) else ""
