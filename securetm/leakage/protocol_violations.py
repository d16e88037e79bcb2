"""Sends messages that break the protocol to the parties of a real run, and records which of them refuses what, and how.

A malicious coordinator sends its own messages, changed on their way to one party. The coordinator is tested as well: a channel
between it and a party changes what the party signed. No protocol is implemented a second time, and no document is attacked.
The claims about an active coordinator rest on these refusals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from securetm.aggregation.masked.messages import HEADER_SIZE, MOST_PARTIES, Kind, Outcome, read_outcome
from securetm.contracts import Answer, Exchange, Roster, State
from securetm.errors import Refused, SecuretmError
from securetm.federation import wire
from securetm.federation.common_words import tell_words
from securetm.federation.coordinator import Coordinator
from securetm.federation.folder import RunFolder
from securetm.federation.paying_errors import NoBudgetLeft, OutOfBudget
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.running_errors import PartyRefused
from securetm.federation.transcript import Parties
from securetm.federation.witness import head_of
from securetm.federation.words import message_of
from securetm.leakage.demonstration import Demonstrations
from securetm.leakage.forked_ledger import ForkedLedger
from securetm.leakage.refusal_record import EVERY_PARTY, RefusalRecord
from securetm.models.neural.prodlda_losses import NetworkShape
from securetm.profiles import claims_of, cohort_of
from securetm.sessions.framing import Reader, places_bytes
from securetm.sessions.identities import COORDINATOR, SIGNATURE

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
_ANSWERED = "answered"
_EVERY = 4  # one word in so many
_LARGEST = 3e38  # near the largest number of 32 bits
_APART = "another list of survivors for one party than for the others"
_CARRIED_ON = "a round from before the last invitation, carried on"
_OTHER_VECTOR = "another vector behind what a party signed, put there on the way"
_ONE_COHORT = "cannot show parties different cohorts"

Forged = Iterator[tuple[str, wire.Body]]  # what is attempted, and the message


def tried_violations(
    profile: str, runs: Demonstrations, settings: Mapping[str, Any] | None = None
) -> tuple[RefusalRecord, ...]:
    """Every violation that applies to this profile, with its outcome. Those that were answered come first.

    `settings` are settings of the run, for documents other than the public ones.
    """
    moves = Violations()
    try:
        runs.run(profile, {**_RUN, **_BUDGET, **(settings or {})}, corruption=moves)
    except SecuretmError:
        if all(one.refused or one.reason for one in moves.tried):  # a violation that was answered may end the run
            raise
    return tuple(sorted(moves.tried, key=attrgetter("refused")))


@dataclass(frozen=True)
class Violations:
    """The violations of one run (a `Corruption`), and their record."""

    tried: list[RefusalRecord] = field(default_factory=list)

    def named(self) -> Mapping[str, Any]:
        """What tells such a run from others."""
        return {"lie": "refused moves"}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """The coordinator that takes the place of the honest one."""
        forked = ForkedLedger(folder, folder.members[1])  # the first party gets the forged messages
        return {"coordinating": partial(ViolatingCoordinator, moves=self, forked=forked)}

    def note(self, profile: str, attempt: str, by: str, reason: str) -> None:
        """Records one violation, and who refused it, if anybody did."""
        self.tried.append(RefusalRecord(profile, attempt, 0, 0, bool(by), by, reason))


@dataclass
class ViolatingCoordinator(Coordinator):
    """Follows the protocol, but sends forged messages to one party as well, and asks too much at the end."""

    moves: Violations = field(default_factory=Violations)
    forked: ForkedLedger | None = None
    _swapped: bool = False
    _first: tuple[int, State] | None = None  # of the first round of training: serial and state

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parties = self._post = _TamperingChannel(self.parties, self)

    def assess(self, state: State) -> dict[str, float]:
        """Asks forbidden questions instead of judging its model."""
        if self.blind:  # then the parties judge their model
            return super().assess(state)
        asked = self._begin_again()
        self._asked("a question that was answered, about other weights after another invitation", _shifted(asked))
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
        if self.masked and self._post.forwarded:
            self._post.try_once(_CARRIED_ON, victim, self._post.forwarded)
        other = wire.pack_request(self.session, message_of(words[:-1]))
        self._post.try_once("another list of words, after another invitation", victim, other)
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
        alike = len(set(self._post.answers.values())) == 1 and {how for how, _ in self._post.answers.values()} == {_ANSWERED}
        self.noted(_ALIKE, *((EVERY_PARTY, "an answer like all others") if alike else ()))

    def _asked_again(self, state: State) -> None:
        """Asks the last question again without one party. Two exact sums would show that party's answer."""
        if self.masked:
            self.numbers[TRAIN] -= 1
            self.store.now("DELETE FROM store WHERE key LIKE 'survivors %'")  # an honest one keeps the list that it named
            self._post.silent = self.members[-1]
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
        """Records one violation: who refused it, or else that the profile makes no claim about it."""
        if not by and attempt == _APART and not self._claims(_ONE_COHORT):
            reason = f"the profile does not claim that a coordinator {_ONE_COHORT}"
        self.moves.note(self.agreement.profile.name, attempt, by, reason)

    def _took(self, exchange: Exchange, member: str, said: wire.Accepted) -> bool:
        """Replaces the first masked vector of a party by another one behind the party's signature."""
        if self.masked and not self._swapped and said.parcels and Reader(said.parcels[0], member).kind == Kind.MASKED:
            self._swapped, reason = True, ""
            try:
                exchange.receive(member, _another_vector(said.parcels[0]))
            except Refused as refused:
                reason = type(refused).__name__
            self.noted(_OTHER_VECTOR, COORDINATOR if reason else "", reason)
        return super()._took(exchange, member, said)

    def _claims(self, what: str) -> bool:
        profile = self.agreement.profile
        made = claims_of(profile, cohort_of(profile, self.members))
        return any((claim.what, claim.against) == (what, COORDINATOR) for claim in made)


@dataclass
class _TamperingChannel:
    """Sends each forged message to the first party once, and the real messages to all parties."""

    parties: Parties
    coordinator: ViolatingCoordinator
    _seen: set[str] = field(default_factory=set)
    _asked: wire.Ask | None = None  # of the previous round, which was answered
    _rounds: int = 0  # of the training
    forwarded: bytes = b""  # the last message of a round that the first party got
    silent: str = ""  # a party that is cut off
    answers: dict[str, tuple[str, int]] = field(default_factory=dict)  # to the last question: the kind of reply, and its length

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Sends the requests, and forged ones before and after them."""
        requests = {member: message for member, message in requests.items() if member != self.silent}
        victim = next(iter(requests))
        session, body = wire.unpack_request(requests[victim])
        for attempt, forged in self._before(body, victim):
            self.try_once(attempt, victim, wire.pack_request(session, forged))
        if self._rounds == _ROUNDS and isinstance(body, wire.Forward) and self.coordinator.masked:
            requests = self._apart(requests, body)
        replies = self.parties.ask(requests)
        for attempt, forged in self._after(body):
            self.try_once(attempt, victim, wire.pack_request(session, forged))
        if isinstance(body, wire.Forward):
            self.forwarded = requests[victim]
        if isinstance(body, wire.Ask):
            self.answers = {member: (_how(reply, member), len(reply)) for member, reply in replies.items()}
        if isinstance(body, wire.Ask) and body.question == TRAIN:
            self._asked, self._rounds = body, self._rounds + 1
        return replies

    def close(self) -> None:
        """Closes the channel."""
        self.parties.close()

    def try_once(self, attempt: str, victim: str, message: bytes) -> None:
        """Sends one forged message to one party, once in a run."""
        if attempt in self._seen:
            return
        self._seen.add(attempt)
        outcome = wire.unpack_reply(self.parties.ask({victim: message})[victim], victim)[1]
        refused = (victim, outcome.name) if isinstance(outcome, wire.Refusal) else ("", "")
        self.coordinator.noted(attempt, *refused)

    def _before(self, body: wire.Body, victim: str) -> Forged:
        if isinstance(body, wire.Invite):
            yield from _invitations(body)
        if isinstance(body, wire.Witness) and body.links:
            broken = tuple(way[::-1] for way in body.links)
            yield "heads of ledgers with links that do not lead to them", replace(body, links=broken)
        if isinstance(body, wire.Ask) and body.question == TRAIN:
            yield from _questions(body, victim, self.coordinator.agreement.profile.minimum_parties)
            if self._asked is not None:
                yield from _replays(body, self._asked)
        if isinstance(body, wire.Forward) and self.coordinator.masked:
            yield from _survivors(body, self.coordinator.members.index(victim))

    def _after(self, body: wire.Body) -> Forged:
        if isinstance(body, wire.Witness) and self.coordinator.forked:
            yield from _put_back(body, self.coordinator, self.coordinator.forked)
        if isinstance(body, wire.Forward) and self.coordinator.masked:
            yield from _second_lists(body)

    def _apart(self, requests: Mapping[str, bytes], forward: wire.Forward) -> Mapping[str, bytes]:
        """Gives the last party another list of survivors than the others, in every message that has a list."""
        last, session = self.coordinator.members[-1], self.coordinator.session
        for outcome, rest, say in _outcome_in(forward):
            other = _without(outcome, outcome.survivors[0])
            signed = _signatures_without(rest, outcome.survivors[0])
            forged = wire.pack_request(session, replace(forward, parcel=other.body(say) + signed))
            if say == Kind.SURVIVORS:
                return {**requests, last: forged}
            self.try_once(_APART, last, forged)
        return {member: request for member, request in requests.items() if member != last}


# ---- forged messages -------------------------------------------------------------------------------------------------


def _invitations(invite: wire.Invite) -> Forged:
    yield "an invitation under another profile", replace(invite, profile=bytes(32))
    yield "an invitation under another plan", replace(invite, agreement=bytes(32))
    yield "an invitation with a member that the coordinator made up", replace(invite, members=(*invite.members, "nobody"))


def _questions(ask: wire.Ask, victim: str, minimum: int) -> Forged:
    few = tuple(m for m in ask.members if m != victim)[: minimum - 2]
    yield "a question to fewer parties than the least number", replace(ask, members=(victim, *few))
    yield "a question in a cohort with a party that nobody knows", replace(ask, members=(*ask.members, "nobody"))
    yield "a question that no plan has", replace(ask, question="documents")
    if ask.witnesses:
        yield "a question without the others' signatures under the ledger", replace(ask, witnesses=())
    if not ask.state:
        yield "weights of the coordinator's own, where the parties learn by themselves", replace(ask, state=_WEIGHTS)
        return
    weights = ask.state["weights"]
    for attempt, other in _other_weights(weights):
        yield attempt, replace(ask, state={**ask.state, "weights": other})


def _put_back(witness: wire.Witness, coordinator: Coordinator, forked: ForkedLedger) -> Forged:
    """A head of a ledger that was forked before its owner's last head. A copy of it was made earlier."""
    if not witness.links:
        forked.copy()
        return
    (seen,) = (head.count for head in map(head_of, witness.heads) if coordinator.members[head.owner] == forked.owner)
    roster = Roster(coordinator.session, coordinator.agreement.profile.digest, coordinator.members, coordinator.keys)
    head, way = forked.shown(roster, seen)
    yield "a ledger that was put back and spent from elsewhere until it is longer", wire.Witness((head,), (way,))


_WEIGHTS: State = {"weights": np.ones(1, dtype=np.float32)}


def _other_weights(weights: Any) -> Iterator[tuple[str, Any]]:
    yield "weights of another shape", weights[:-1]
    yield "weights that are no numbers", np.full_like(weights, np.nan)
    yield "other weights for one party than for the others in the same round", weights * 2


def _replays(ask: wire.Ask, before: wire.Ask) -> Forged:
    yield "the round before, once more", before
    yield "this question under the round id of the one before", replace(ask, round_id=before.round_id)


def _survivors(forward: wire.Forward, victim: int) -> Forged:
    """False lists of survivors, before the real one is sent."""
    for outcome, rest, say in _outcome_in(forward):
        everybody = tuple(sorted((*outcome.survivors, *outcome.dropped)))
        others = tuple(place for place in everybody if place != victim)
        signing = "to sign " if say == Kind.SURVIVORS else ""
        substitutes = {
            "calls the party dropped, which answered": (others, (victim,)),
            "has another party both stay and drop out": (everybody, others[-1:]),
            "leaves a party out": (tuple(p for p in everybody if p != others[-1]), ()),
            "names two survivors": ((victim, others[0]), others[1:]),
        }
        for attempt, (survivors, dropped) in substitutes.items():
            lists = replace(outcome, survivors=tuple(sorted(survivors)), dropped=tuple(sorted(dropped)))
            yield f"a list {signing}that {attempt}", replace(forward, parcel=lists.body(say) + rest)
        if len(rest) > len(places_bytes(())):
            cut = outcome.body(say) + places_bytes(())
            yield "the real list with nobody's signature", replace(forward, parcel=cut)


def _second_lists(forward: wire.Forward) -> Forged:
    """A second list after the first was signed or answered: it calls a survivor dropped."""
    for outcome, rest, say in _outcome_in(forward):
        other = _without(outcome, outcome.survivors[-1])
        done = "signed" if say == Kind.SURVIVORS else _ANSWERED
        yield f"a second list of survivors, after one was {done}", replace(forward, parcel=other.body(say) + rest)


def _another_vector(parcel: bytes) -> bytes:
    """The signed header with another vector of the same length."""
    return parcel[:HEADER_SIZE] + bytes(255 - one for one in parcel[HEADER_SIZE:])


def _without(outcome: Outcome, place: int) -> Outcome:
    survivors = tuple(one for one in outcome.survivors if one != place)
    return replace(outcome, survivors=survivors, dropped=tuple(sorted((*outcome.dropped, place))))


def _signatures_without(listed: bytes, place: int) -> bytes:
    """The places and signatures behind a list of survivors, without one place; nothing if there are none."""
    count = int.from_bytes(listed[:2], "big")
    places = [int.from_bytes(listed[2 + 2 * n : 4 + 2 * n], "big") for n in range(count)]
    signatures = [listed[at : at + SIGNATURE] for at in range(2 + 2 * count, len(listed), SIGNATURE)]
    kept = {one: signature for one, signature in zip(places, signatures, strict=True) if one != place}
    return places_bytes(tuple(kept)) + b"".join(kept.values()) if listed else b""


def _outcome_in(forward: wire.Forward) -> Iterator[tuple[Outcome, bytes, Kind]]:
    """The lists in a message of a masked round, the bytes after them, and the kind of message; nothing for other messages."""
    reader = Reader(forward.parcel, COORDINATOR)
    if reader.kind in (Kind.SURVIVORS, Kind.UNMASK):
        outcome = read_outcome(reader, MOST_PARTIES)
        yield outcome, bytes(reader.rest()), Kind(reader.kind)


def _shifted(state: State) -> State:
    return {**state, "weights": state["weights"] * 2}


def _how(reply: bytes, party: str) -> str:
    outcome = wire.unpack_reply(reply, party)[1]
    return outcome.name if isinstance(outcome, wire.Refusal) else "answered"
