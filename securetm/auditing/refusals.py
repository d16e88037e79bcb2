"""What parties must refuse, tried in real runs: sums below a profile's least number of documents, and protocol violations.

A malicious coordinator sends its own messages, changed on their way to one party. The coordinator is tested as well: a channel
between it and a party changes a message that the party signed. The claims about an active coordinator rest on these refusals.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import GaussianDpEvent

from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.aggregation.masked.messages import HEADER_SIZE, MOST_PARTIES, Kind, Outcome, read_outcome
from securetm.auditing.record import EVERY_PARTY, RefusalRecord
from securetm.auditing.recorded import serials_of
from securetm.auditing.roles import Corruption
from securetm.auditing.runs import Demonstrations
from securetm.auditing.views import TOTAL
from securetm.contracts import Answer, Exchange, Roster, Sampling, State
from securetm.corpus.corpus import Corpus
from securetm.data_classes import dataclass, field, replace
from securetm.errors import Refused, SecuretmError
from securetm.federation.budget.signing import LedgerWitness
from securetm.federation.budget.witness import head_of
from securetm.federation.coordinator.coordinator import Coordinator
from securetm.federation.coordinator.rounds import NoBudgetLeft, PartyRefused
from securetm.federation.coordinator.words import message_of, tell_words
from securetm.federation.document_minimum import TooFewToTakePart, fewest_left
from securetm.federation.folder import RunFolder, begin
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import HELD_OUT, TRAIN
from securetm.federation.refusal_errors import BelowMinimum, OutOfBudget
from securetm.federation.simulation.simulation import train
from securetm.federation.store import COMMON, SqliteStore
from securetm.federation.transcript import Parties, Transcript
from securetm.federation.wire import wire
from securetm.models.neural.network import NetworkShape
from securetm.plans.profiles import claims_of, cohort_of, read_profile
from securetm.plans.recommend import whole_plan
from securetm.plans.schema import Plan
from securetm.private_files import private_file, private_folder
from securetm.sessions.framing import Reader, head, places_bytes
from securetm.sessions.identities import COORDINATOR, SIGNATURE, identity_of
from securetm.stages import Stages
from securetm.wording import counted

# ---- runs below a profile's least number of documents ---------------------------------------------------------------
# A sum hides which party sent something, not what was sent. The profile `masked` limits that only by the least number of
# documents in a sum, so an audit tests this limit.


def tried_below_minimum(
    profile: str, runs: Demonstrations, settings: Mapping[str, Any] | None = None
) -> tuple[RefusalRecord, ...]:
    """Begins two runs, one with too small batches and one with too few documents.

    Too few means fewer than the minimum after dropouts, even if the whole cohort has enough. Where secret coins choose the
    documents, a coordinator cannot ask for batches, so only the second run is begun. No run is begun if every sum is large
    enough.
    """
    # a coordinator can ask this model for batches that are too small
    rules, some = read_profile(profile), {"model.name": "prodlda", **(settings or {})}
    corpora = runs.documents(whole_plan(None, {**some, "profile": "open"}))  # the documents are the same in every profile
    left = rules.aggregation.remaining(cohort_of(rules, tuple(corpora)), len(corpora))
    each, least = (rules.minimum_documents - 1) // left, fewest_left(rules, tuple(corpora))
    few = (rules.minimum_documents - 1) // least
    if each < 1:
        return ()
    if rules.vocabularies == ("file",):
        some |= {"vocabulary.source": "file", "vocabulary.max_words": 500, "vocabulary.min_documents": 1}
    some |= {"profile": profile, "training.rounds": 1}
    cut = {name: corpus.select(np.arange(min(few, len(corpus)))) for name, corpus in corpora.items()}
    whole = runs.planned({**some, "model.batch": rules.minimum_documents})
    last = _tried_run(whole, cut, few, least, "in all", runs.place / f"{profile}-few-documents", runs.stages)
    if any(part.sampling is Sampling.COINS for part in rules.mechanisms):
        return (last,)
    small, place = runs.planned({**some, "model.batch": each}), runs.place / f"{profile}-small-batches"
    return _tried_run(small, corpora, each, left, "in each answer", place, runs.stages), last


def _tried_run(
    plan: Plan, corpora: Mapping[str, Corpus], each: int, left: int, where: str, place: Path, stages: Stages
) -> RefusalRecord:
    """Who refused the run, the reason, and whether any sum of `each` documents of `left` parties was opened."""
    documents = sum(sorted(min(each, len(corpus)) for corpus in corpora.values())[:left])
    attempt = f"{counted(each, 'document')} of each of {len(corpora)} parties {where}, {documents} in a sum over {left} of them"
    folder = begin(place, plan, corpora, with_content=True)
    minimum, by, reason = folder.agreement.profile.minimum_documents, "", ""
    try:
        train(folder, stages)
    except PartyRefused as refused:
        by, reason = refused.party, refused.reason
    except TooFewToTakePart as refused:
        by, reason = refused.party, type(refused).__name__
    select = "SELECT COUNT(*) FROM messages WHERE serial = ? AND channel = ?"
    with closing(Transcript(folder.path / "transcript", with_content=True)) as transcript:
        every = serials_of(folder, (TRAIN,), 1000)  # rounds, more than such a run has
        opened = sum(transcript.rows(select, serial, TOTAL)[0][0] for serial in every)
    held = reason in (BelowMinimum.__name__, TooFewToTakePart.__name__) and not opened
    return RefusalRecord(plan.profile, attempt, documents, minimum, held, by, reason)


# ---- forged messages: for each honest one, those that parties must refuse beside it ---------------------------------

ANSWERED = "answered"
Forged = Iterator[tuple[str, wire.Body]]  # what is attempted, and the message
_OWN_WEIGHTS: State = {"weights": np.ones(1, dtype=np.float32)}


def invitations(invite: wire.Invite) -> Forged:
    """Invitations to something else."""
    yield "an invitation under another profile", replace(invite, profile=bytes(32))
    yield "an invitation under another plan", replace(invite, agreement=bytes(32))
    yield "an invitation with a member that the coordinator made up", replace(invite, members=(*invite.members, "nobody"))


def heads_of_ledgers(witness: wire.Witness) -> Forged:
    if witness.links:
        broken = tuple(way[::-1] for way in witness.links)
        yield "heads of ledgers with links that do not lead to them", replace(witness, links=broken)


def questions(ask: wire.Ask, before: wire.Ask | None, victim: str, minimum: int) -> Forged:
    """Questions to other parties, about other weights, or asked before; `before` is the question of the previous round."""
    few = tuple(m for m in ask.members if m != victim)[: minimum - 2]
    yield "a question to fewer parties than the least number", replace(ask, members=(victim, *few))
    yield "a question in a cohort with a party that nobody knows", replace(ask, members=(*ask.members, "nobody"))
    yield "a question that no plan has", replace(ask, question="documents")
    if ask.witnesses:
        yield "a question without the others' signatures under the ledger", replace(ask, witnesses=())
    if ask.state:
        weights = ask.state["weights"]
        others = {
            "weights of another shape": weights[:-1],
            "weights that are no numbers": np.full_like(weights, np.nan),
            "other weights for one party than for the others in the same round": weights * 2,
        }
        for attempt, other in others.items():
            yield attempt, replace(ask, state={**ask.state, "weights": other})
    else:
        yield "weights of the coordinator's own, where the parties learn by themselves", replace(ask, state=_OWN_WEIGHTS)
    if before is not None:
        yield "the round before, once more", before
        yield "this question under the round id of the one before", replace(ask, round_id=before.round_id)


# ---- lists of survivors ----------------------------------------------------------------------------------------------


def false_lists(forward: wire.Forward, victim: int) -> Forged:
    """False lists of survivors, for before the real one is sent."""
    for outcome, rest, kind in outcome_in(forward):
        cohort = tuple(sorted((*outcome.survivors, *outcome.dropped)))
        others = tuple(place for place in cohort if place != victim)
        signing = "to sign " if kind == Kind.SURVIVORS else ""
        substitutes = {
            "calls the party dropped, which answered": (others, (victim,)),
            "has another party both stay and drop out": (cohort, others[-1:]),
            "leaves a party out": (tuple(p for p in cohort if p != others[-1]), ()),
            "names two survivors": (tuple(sorted((victim, others[0]))), others[1:]),
        }
        for attempt, (survivors, dropped) in substitutes.items():
            lists = replace(outcome, survivors=survivors, dropped=dropped)
            yield f"a list {signing}that {attempt}", replace(forward, parcel=lists.body(kind) + rest)
        if len(rest) > len(places_bytes(())):
            cut = outcome.body(kind) + places_bytes(())
            yield "the real list with nobody's signature", replace(forward, parcel=cut)


def second_lists(forward: wire.Forward) -> Forged:
    """A second list that calls a survivor dropped, for after the first was signed or answered."""
    for outcome, rest, kind in outcome_in(forward):
        other = without(outcome, outcome.survivors[-1])
        done = "signed" if kind == Kind.SURVIVORS else ANSWERED
        yield f"a second list of survivors, after one was {done}", replace(forward, parcel=other.body(kind) + rest)


def outcome_in(forward: wire.Forward) -> Iterator[tuple[Outcome, bytes, Kind]]:
    """The lists in a message of a masked round, the bytes after them, and the kind of message; nothing for other messages."""
    reader = Reader(forward.parcel, COORDINATOR)
    if reader.kind in (Kind.SURVIVORS, Kind.UNMASK):
        outcome = read_outcome(reader, MOST_PARTIES)
        yield outcome, bytes(reader.rest()), Kind(reader.kind)


def without(outcome: Outcome, place: int) -> Outcome:
    survivors = tuple(one for one in outcome.survivors if one != place)
    return replace(outcome, survivors=survivors, dropped=tuple(sorted((*outcome.dropped, place))))


def signatures_without(listed: bytes, place: int) -> bytes:
    """The places and signatures behind a list of survivors, without one place; nothing if there are none."""
    if not listed:
        return b""
    reader = Reader(head(Kind.UNMASK) + listed, COORDINATOR)
    kept = {one: signature for one, signature in reader.entries(reader.places(MOST_PARTIES), SIGNATURE).items() if one != place}
    return places_bytes(kept) + b"".join(kept.values())


def another_vector(parcel: bytes) -> bytes:
    return parcel[:HEADER_SIZE] + bytes(255 - one for one in parcel[HEADER_SIZE:])


# ---- a party's ledger, copied and spent from apart from the real one ------------------------------------------------
# With its owner's signature, as if the party's disk were manipulated. The party itself continues with its real ledger.

_ELSEWHERE = Spend(GaussianDpEvent(1000.0))  # an entry that costs almost nothing


@dataclass(frozen=True)
class ForkedLedger:
    """A copy of the ledger of one party of a run, made early."""

    folder: RunFolder
    owner: str

    @property
    def _copy(self) -> Path:
        return self.folder.path / "put-back" / self.folder.ledger(self.owner).name

    def copy(self) -> None:
        """Makes the copy, while the party still has most of its budget."""
        private_folder(self._copy.parent)
        private_file(self._copy)
        with sqlite3.connect(self.folder.ledger(self.owner)) as opened, sqlite3.connect(self._copy) as copy:
            opened.backup(copy)
        opened.close()
        copy.close()

    def shown(self, roster: Roster, seen: int) -> tuple[bytes, bytes]:
        """Spends from the copy until it is longer than the real ledger. Returns its signed head, and links from `seen` on."""
        budget = self.folder.agreement.budget
        assert budget is not None  # else there is no ledger
        store, others = PartyStore(self.folder.party(self.owner)), SqliteStore(self._copy.with_suffix(".others"), COMMON)
        with Ledger.open(self._copy, self.owner, budget) as ledger:
            while ledger.head[0] <= seen:
                ledger.record("elsewhere", _ELSEWHERE, {"profile": self.folder.agreement.plan.profile})
            witness = LedgerWitness(ledger, identity_of(self.owner, roster, store), others, 0)
            signed, links = witness.announce(), b"".join(ledger.links(seen))
        store.close()
        others.close()
        return signed, links


# ---- violations of the protocol -------------------------------------------------------------------------------------

_ROUNDS = 2  # messages of the first are replayed in the second
_RUN: Mapping[str, Any] = {
    "model.name": "prodlda",
    "model.batch": 50,
    "model.n_topics": 5,
    "model.hidden": 16,
    "training.rounds": _ROUNDS,
    "vocabulary.source": "file",
    "vocabulary.max_words": 500,
    "privacy.epsilon": 2.0,  # enough for these rounds and no more
}
_ALIKE = "weights of 3e38 for some words: a reply that tells whose documents have them"
_LARGEST = 3e38  # near the largest number of 32 bits
_APART = "another list of survivors for one party than for the others"
_STALE = "what others signed of a ledger before the last invitation"
_ONE_COHORT = "cannot show parties different cohorts"


def tried_violations(
    profile: str, runs: Demonstrations, settings: Mapping[str, Any] | None = None
) -> tuple[RefusalRecord, ...]:
    """Every violation that applies to this profile, with its outcome. Those that were answered come first.

    `settings` are settings of the run, for documents other than the public ones.
    """
    found: list[RefusalRecord] = []

    def roles(folder: RunFolder) -> Mapping[str, Any]:
        forked = ForkedLedger(folder, folder.members[1])  # the first party gets the forged messages
        return {"coordinating": partial(ViolatingCoordinator, tried=found, forked=forked)}

    try:
        lies = Corruption({"lie": "refused moves"}, roles)
        runs.run(profile, {**_RUN, **(settings or {})}, corruption=lies)
    except SecuretmError:
        if all(one.refused or one.reason for one in found):  # a violation that was answered may end the run
            raise
    return tuple(sorted(found, key=attrgetter("refused")))


@dataclass
class ViolatingCoordinator(Coordinator):
    """Follows the protocol, but sends forged messages to one party as well, and asks forbidden questions at the end."""

    tried: list[RefusalRecord] = field(default_factory=list)
    forked: ForkedLedger | None = None
    _swapped: bool = False
    _first: tuple[int, State] | None = None  # of the first round of training: serial and state

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parties = self._channel = _TamperingChannel(self.parties, self)

    def assess(self, state: State) -> dict[str, float]:
        """Asks forbidden questions instead of judging its model."""
        if self.parties_open:  # then the parties judge their model
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
            self._channel.try_once("a round from before the last invitation, carried on", victim, self._channel.forwarded)
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
        layers = NetworkShape.from_weights(weights, hidden, topics).views(weights)
        layers["words"][::4] = _LARGEST  # one word in so many
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
        return self.agreement.profile.aggregation.names_survivors

    def noted(self, attempt: str, by: str = "", reason: str = "") -> None:
        """Records one violation: the role that refused it, or else that the profile makes no claim about it."""
        profile = self.agreement.profile
        if attempt == _APART and not by:
            claimed = claims_of(profile, cohort_of(profile, self.members))
            if (_ONE_COHORT, COORDINATOR) not in [(claim.what, claim.against) for claim in claimed]:
                reason = f"the profile does not claim that a coordinator {_ONE_COHORT}"
        self.tried.append(RefusalRecord(profile.name, attempt, 0, 0, bool(by), by, reason))

    def _took(self, exchange: Exchange, member: str, accepted: wire.Accepted | None) -> bool:
        """Replaces the first masked vector of a party by another one behind the party's signature."""
        parcels = accepted.parcels if accepted is not None else ()
        if self.masked and not self._swapped and parcels and Reader(parcels[0], member).kind == Kind.MASKED:
            self._swapped, reason = True, ""
            try:
                exchange.receive(member, another_vector(bytes(parcels[0])))
            except Refused as refused:
                reason = type(refused).__name__
            self.noted("another vector behind what a party signed, put there on the way", COORDINATOR if reason else "", reason)
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
        coordinator, before, after = self.coordinator, list[Forged](), list[Forged]()
        if isinstance(body, wire.Invite):
            before.append(invitations(body))
        if isinstance(body, wire.Witness):
            before.append(heads_of_ledgers(body))
            if coordinator.forked:
                after.append(_put_back(body, coordinator, coordinator.forked))
        if isinstance(body, wire.Ask) and body.question == TRAIN:
            before.append(questions(body, self.asked, victim, coordinator.agreement.profile.minimum_parties))
        if isinstance(body, wire.Forward) and coordinator.masked:
            before.append(false_lists(body, coordinator.members.index(victim)))
            after.append(second_lists(body))
        for attempt, forged in chain.from_iterable(before):
            self.try_once(attempt, victim, wire.pack_request(session, forged))
        if self._rounds == _ROUNDS and isinstance(body, wire.Forward) and self.coordinator.masked:
            requests = self._apart(requests, body)
        replies = dict(self.parties.ask(requests, most))
        for attempt, forged in chain.from_iterable(after):
            self.try_once(attempt, victim, wire.pack_request(session, forged))
        if isinstance(body, wire.Forward):
            self.forwarded = requests[victim]
        elif isinstance(body, wire.Ask):
            self.answers = {member: (_refusal_in(reply, member) or ANSWERED, len(reply)) for member, reply in replies.items()}
            if body.question == TRAIN:
                self.asked, self._rounds = body, self._rounds + 1
        return iter(replies.items())

    def present(self) -> frozenset[str]:
        return self.parties.present()

    def close(self) -> None:
        self.parties.close()

    def try_once(self, attempt: str, victim: str, message: bytes) -> None:
        """Sends one forged message to one party, once in a run."""
        if attempt in self._seen:
            return
        self._seen.add(attempt)
        refusal = _refusal_in(dict(self.parties.ask({victim: message}, wire.MOST_BYTES))[victim], victim)
        self.coordinator.noted(attempt, victim if refusal else "", refusal)

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
