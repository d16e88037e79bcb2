"""What a lying coordinator tries against the parties of a real run, message by message, and which of them refuses it how;
and what the coordinator refuses where somebody between it and a party changes what the party signed.

The run is real, and so is every message: the coordinator's own, changed on its way to one party. It re-implements no protocol
and attacks no document; what parties refuse here is what the claims about an active coordinator rest on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import (
    HEADER_SIZE,
    MOST_PARTIES,
    Kind,
    Outcome,
    Reader,
    kind_of,
    places_bytes,
    read_outcome,
)
from securetm.aggregation.plain import COORDINATOR
from securetm.contracts import Answer, Exchange, Parcel, Roster, State
from securetm.errors import Refused, SecuretmError
from securetm.federation import wire
from securetm.federation.coordinator import Coordinator
from securetm.federation.folder import RunFolder
from securetm.federation.paying_errors import NoBudgetLeft, OutOfBudget
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.running_errors import PartyRefused
from securetm.federation.transcript import Parties
from securetm.federation.witness import head_of
from securetm.federation.words import message_of
from securetm.leakage.demonstration import Demonstrations
from securetm.leakage.findings import EVERY_PARTY, Refusal
from securetm.leakage.forked_ledger import ForkedLedger
from securetm.models.neural.prodlda_losses import Shape
from securetm.profiles import claims_of, cohort_of
from securetm.sessions.identities import SIGNATURE

_ROUNDS = 2  # the second can be mixed up with the first
_RUN: Mapping[str, Any] = {
    "model.name": "prodlda",
    "model.batch": 50,
    "model.n_topics": 5,
    "model.hidden": 16,
    "training.rounds": _ROUNDS,
    "vocabulary.source": "file",
    "vocabulary.max_words": 500,
}
_BUDGET: Mapping[str, Any] = {"privacy.epsilon": 2.0}  # which lasts for these rounds and no longer
_ALIKE = "weights of 3e38 for some words: a reply that tells whose documents have them"
_ANSWERED = "answered"
_APART_BY = 4  # every so many words
_BEYOND = 3e38  # near the end of what 32 bits hold
_APART = "another list of survivors for one party than for the others"
_CARRIED_ON = "a round from before the last invitation, carried on"
_OTHER_VECTOR = "another vector behind what a party signed, put there on the way"
_ONE_COHORT = "cannot show parties different cohorts"

Tries = Iterator[tuple[str, wire.Body]]  # in words, and what is sent


def tried_violations(profile: str, runs: Demonstrations, settings: Mapping[str, Any] | None = None) -> tuple[Refusal, ...]:
    """Every move that this profile gives room for, with what became of it: first what was answered, then as it was tried.

    `settings` are those of the run, where its documents are not to be the public ones.
    """
    moves = Violations()
    try:
        runs.run(profile, {**_RUN, **_BUDGET, **(settings or {})}, corruption=moves)
    except SecuretmError:
        if all(one.refused or one.reason for one in moves.tried):  # what should be refused, and is answered, may end the run
            raise
    return tuple(sorted(moves.tried, key=attrgetter("refused")))


@dataclass(frozen=True)
class Violations:
    """What is tried in a run, and the record of it: it takes the place of lies in a run that is made for them."""

    tried: list[Refusal] = field(default_factory=list)

    def named(self) -> Mapping[str, Any]:
        """What sets a run with these moves apart from others."""
        return {"lie": "refused moves"}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """Who takes part in the run in place of those who keep to their word."""
        forked = ForkedLedger(folder, folder.members[1])  # the first party is lied to
        return {"coordinating": partial(ViolatingCoordinator, moves=self, forked=forked)}

    def note(self, profile: str, attempt: str, by: str, reason: str) -> None:
        """One move, and who refused it; nobody where it was answered."""
        self.tried.append(Refusal(profile, attempt, 0, 0, bool(by), by, reason))


@dataclass
class ViolatingCoordinator(Coordinator):
    """Keeps to the protocol, but that before its own messages it sends others to one party, and at the end asks too much."""

    moves: Violations = field(default_factory=Violations)
    forked: ForkedLedger | None = None
    _swapped: bool = False
    _first: tuple[int, State] | None = None  # the first round of the training: its serial, and what it was about

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parties = self._post = _TamperingChannel(self.parties, self)

    def _assess(self, state: State) -> dict[str, float]:
        """Instead of judging its model it asks once more what may be asked no more."""
        if self._blind:  # the parties then learn how good their model is
            return super()._assess(state)
        asked = self._begin_again()
        self._asked("a question that was answered, about other weights after another invitation", _shifted(asked))
        if self.questions.paid:
            self._begin_again()
            self._asked("one question more than the budget reaches", asked)  # the very same again: the plan has no next one
        else:
            self._look_at_replies(state)
            self._asked_again(state)
        self._numbers[TRAIN] = self.agreement.plan.training.rounds
        self._asked("one round more than the plan has", state)
        return {}

    def ask(self, question: str, state: State, *, keep: bool = False) -> Answer:
        """As every coordinator does."""
        if question == TRAIN and self._first is None:
            self._first = self._serial + 1, state
        return super().ask(question, state, keep=keep)

    def _begin_again(self) -> State:
        """Back to before the first round, as one that was started anew goes; the first party is told of other words."""
        words, victim = self.questions.vocabulary, self.members[0]
        assert self._first is not None  # it has trained
        self._serial, self._numbers[TRAIN] = self._first[0] - 1, 0
        self._tell(wire.Invite(self.agreement.digest, self.agreement.profile.digest, self.members, 0))
        if self.masked and self._post.forwarded:
            self._post.try_once(_CARRIED_ON, victim, self._post.forwarded)
        other = wire.pack_request(self.session, message_of(words[:-1]))
        self._post.try_once("another list of words, after another invitation", victim, other)
        self._adopt(words)
        return self._first[1]

    def _look_at_replies(self, state: State) -> None:
        """Weights beyond all numbers for some words: whose reply is unlike the others' would be whose documents have it."""
        weights = np.array(state["weights"])
        hidden, topics = int(self.agreement.plan.model.settings["hidden"]), len(self.agreement.model.topics(state))
        layers = Shape.of(weights, hidden, topics).views(weights)
        layers["words"][::_APART_BY] = _BEYOND
        layers["inner"][...] *= 1e4  # so that what the word brings is beyond all numbers, and other words are not
        with suppress(PartyRefused):
            self.ask(HELD_OUT, {**state, "weights": weights})
        alike = len(set(self._post.answers.values())) == 1 and {how for how, _ in self._post.answers.values()} == {_ANSWERED}
        self.noted(_ALIKE, *((EVERY_PARTY, "an answer like all others") if alike else ()))

    def _asked_again(self, state: State) -> None:
        """The last question a second time, of fewer parties: whom it leaves out is what two exact sums would show."""
        if self.masked:
            self._numbers[TRAIN] -= 1
            self.store.now("DELETE FROM store WHERE key LIKE 'survivors %'")  # an honest one keeps to the list it named
            self._post.silent = self.members[-1]
            self._asked("the same question once more, over the others alone as if one party had dropped out", state)
        self._numbers[TRAIN] -= 1
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
        """Whether its parties tell apart who survived a round, and who did not."""
        return isinstance(self.agreement.profile.aggregation, MaskedSum)

    def noted(self, attempt: str, by: str = "", reason: str = "") -> None:
        """One move, with who refused it; where nobody did, with what the profile does not claim."""
        if not by and attempt == _APART and not self._claims(_ONE_COHORT):
            reason = f"the profile does not claim that a coordinator {_ONE_COHORT}"
        self.moves.note(self.agreement.profile.name, attempt, by, reason)

    def _took(self, exchange: Exchange, member: str, said: wire.Accepted, further: list[Parcel]) -> bool:
        """Before the first masked vector of a party is added, another one comes under what the party signed."""
        if self.masked and not self._swapped and said.parcels and kind_of(said.parcels[0], member) == Kind.MASKED:
            self._swapped, reason = True, ""
            try:
                exchange.receive(member, _another_vector(said.parcels[0]))
            except Refused as refused:
                reason = type(refused).__name__
            self.noted(_OTHER_VECTOR, COORDINATOR if reason else "", reason)
        return super()._took(exchange, member, said, further)

    def _claims(self, what: str) -> bool:
        profile = self.agreement.profile
        made = claims_of(profile, cohort_of(profile, self.members))
        return any((claim.what, claim.against) == (what, COORDINATOR) for claim in made)


@dataclass
class _TamperingChannel:
    """The way to the parties: the first of them gets each lie of its kind once, and then the message as it should be."""

    parties: Parties
    coordinator: ViolatingCoordinator
    _seen: set[str] = field(default_factory=set)
    _asked: wire.Ask | None = None  # the round before, which was answered
    _rounds: int = 0  # of the training
    forwarded: bytes = b""  # the last message of a round that the first party got
    silent: str = ""  # a party of which nothing is heard any more
    answers: dict[str, tuple[str, int]] = field(default_factory=dict)  # of the last question: how, and in how many bytes

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """What was to be sent is sent; before and after it what a liar would send."""
        requests = {member: message for member, message in requests.items() if member != self.silent}
        victim = next(iter(requests))
        session, body = wire.unpack_request(requests[victim])
        for attempt, lie in self._before(body, victim):
            self.try_once(attempt, victim, wire.pack_request(session, lie))
        if self._rounds == _ROUNDS and isinstance(body, wire.Forward) and self.coordinator.masked:
            requests = self._apart(requests, body)
        replies = self.parties.ask(requests)
        for attempt, lie in self._after(body):
            self.try_once(attempt, victim, wire.pack_request(session, lie))
        if isinstance(body, wire.Forward):
            self.forwarded = requests[victim]
        if isinstance(body, wire.Ask):
            self.answers = {member: (_how(reply, member), len(reply)) for member, reply in replies.items()}
        if isinstance(body, wire.Ask) and body.question == TRAIN:
            self._asked, self._rounds = body, self._rounds + 1
        return replies

    def close(self) -> None:
        """Ends what was started for the parties."""
        self.parties.close()

    def try_once(self, attempt: str, victim: str, message: bytes) -> None:
        """One lie to one party, once in a run."""
        if attempt in self._seen:
            return
        self._seen.add(attempt)
        outcome = wire.unpack_reply(self.parties.ask({victim: message})[victim], victim)[1]
        refused = (victim, outcome.name) if isinstance(outcome, wire.Refusal) else ("", "")
        self.coordinator.noted(attempt, *refused)

    def _before(self, body: wire.Body, victim: str) -> Tries:
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

    def _after(self, body: wire.Body) -> Tries:
        if isinstance(body, wire.Witness) and self.coordinator.forked:
            yield from _put_back(body, self.coordinator, self.coordinator.forked)
        if isinstance(body, wire.Forward) and self.coordinator.masked:
            yield from _second_lists(body)

    def _apart(self, requests: Mapping[str, bytes], forward: wire.Forward) -> Mapping[str, bytes]:
        """The last party gets another list than the others, from the first message that has one to the last."""
        last, session = self.coordinator.members[-1], self.coordinator.session
        for outcome, rest, say in _outcome_in(forward):
            other = _without(outcome, outcome.survivors[0])
            signed = _signatures_without(rest, outcome.survivors[0])
            lie = wire.pack_request(session, replace(forward, parcel=other.body(say) + signed))
            if say == Kind.SURVIVORS:
                return {**requests, last: lie}
            self.try_once(_APART, last, lie)
        return {member: request for member, request in requests.items() if member != last}


# ---- lies ------------------------------------------------------------------------------------------------------------


def _invitations(invite: wire.Invite) -> Tries:
    yield "an invitation under another profile", replace(invite, profile=bytes(32))
    yield "an invitation under another plan", replace(invite, agreement=bytes(32))
    yield "an invitation with a member that the coordinator made up", replace(invite, members=(*invite.members, "nobody"))


def _questions(ask: wire.Ask, victim: str, minimum: int) -> Tries:
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


def _put_back(witness: wire.Witness, coordinator: Coordinator, forked: ForkedLedger) -> Tries:
    """A ledger that forked before the head that the party has just signed; a copy was put aside when it first saw one."""
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


def _replays(ask: wire.Ask, before: wire.Ask) -> Tries:
    yield "the round before, once more", before
    yield "this question under the round id of the one before", replace(ask, round_id=before.round_id)


def _survivors(forward: wire.Forward, victim: int) -> Tries:
    """Lists of survivors in place of the real one, whose message is about to be sent."""
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


def _second_lists(forward: wire.Forward) -> Tries:
    """A second list, once the first was signed or answered: one party stayed by one of them, and left by the other."""
    for outcome, rest, say in _outcome_in(forward):
        other = _without(outcome, outcome.survivors[-1])
        done = "signed" if say == Kind.SURVIVORS else _ANSWERED
        yield f"a second list of survivors, after one was {done}", replace(forward, parcel=other.body(say) + rest)


def _another_vector(parcel: bytes) -> bytes:
    """The signed header, and behind it a vector of the same length that the party did not send."""
    return parcel[:HEADER_SIZE] + bytes(255 - one for one in parcel[HEADER_SIZE:])


def _without(outcome: Outcome, place: int) -> Outcome:
    survivors = tuple(one for one in outcome.survivors if one != place)
    return replace(outcome, survivors=survivors, dropped=tuple(sorted((*outcome.dropped, place))))


def _signatures_without(listed: bytes, place: int) -> bytes:
    """Places and their signatures, as they stand behind a list of survivors, without that one's; nothing where none stand."""
    count = int.from_bytes(listed[:2], "big")
    places = [int.from_bytes(listed[2 + 2 * n : 4 + 2 * n], "big") for n in range(count)]
    signatures = [listed[at : at + SIGNATURE] for at in range(2 + 2 * count, len(listed), SIGNATURE)]
    kept = {one: signature for one, signature in zip(places, signatures, strict=True) if one != place}
    return places_bytes(tuple(kept)) + b"".join(kept.values()) if listed else b""


def _outcome_in(forward: wire.Forward) -> Iterator[tuple[Outcome, bytes, Kind]]:
    """The lists in a message of a masked round, what follows them, and what the message is; nothing in any other message."""
    reader = Reader(forward.parcel, COORDINATOR)
    if reader.kind in (Kind.SURVIVORS, Kind.UNMASK):
        outcome = read_outcome(reader, MOST_PARTIES)
        yield outcome, bytes(reader.rest()), Kind(reader.kind)


def _shifted(state: State) -> State:
    return {**state, "weights": state["weights"] * 2}


def _how(reply: bytes, party: str) -> str:
    outcome = wire.unpack_reply(reply, party)[1]
    return outcome.name if isinstance(outcome, wire.Refusal) else "answered"
