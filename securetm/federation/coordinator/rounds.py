"""How the coordinator asks: one question of all parties at a time, through one session of the aggregation."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial

from securetm.contracts import (
    Answer,
    Array,
    Cohort,
    Entropy,
    Exchange,
    Least,
    Message,
    Needs,
    Roster,
    RoundContext,
    State,
    Terms,
)
from securetm.data_classes import dataclass, field, replace
from securetm.errors import Malformed, Refused, SecuretmError, TooFewParties, UnknownRound, WrongSession
from securetm.federation.budget.witness import Countersigning, LedgerStep
from securetm.federation.document_minimum import documents_held
from securetm.federation.limits import ROOM, largest_reply
from securetm.federation.questions import Questions, asked_of, compile_question, preparation_identity, share_identity
from securetm.federation.refusal_errors import AnotherCohort, AskedOtherwise, BadState, NotInvited, OutOfBudget, OutOfTurn
from securetm.federation.store import CoordinatorStore, named
from securetm.federation.transcript import FewPasses, Parties, Replies, Watch, Wave
from securetm.federation.wire import wire
from securetm.federation.wire.wire import LONGEST_SIGNED
from securetm.plans.agreement import Agreement

# Refusals of a party that was started anew.
FORGOT = frozenset(kind.__name__ for kind in (NotInvited, WrongSession, UnknownRound))
_ANSWERED_BEFORE = frozenset(kind.__name__ for kind in (AnotherCohort, AskedOtherwise))


class NoBudgetLeft(SecuretmError):
    """the privacy budget of {party} allows no other answer"""

    party: str
    hint = (
        "`securetm budget ledger FILE` shows what earlier runs spent; only the party itself can allow more, with --allow, "
        "knowing what that gives up"
    )


class PartiesMissing(SecuretmError):
    """the session ended, because these parties refused or did not answer in time: {names}"""

    names: str
    hint = (
        "the run goes on from its last checkpoint when they are back; `survivors` in [coordinator] lets it go on without them"
    )


class PartyRefused(SecuretmError):
    """{party} refused: {reason}"""

    party: str
    reason: str
    hint = "the reason is in that party's own log; no details leave it"

    def advice(self) -> str:
        """Where it answered before, no later session of this run can ask it otherwise."""
        if self.reason not in _ANSWERED_BEFORE:
            return super().advice()
        return (
            "it answered this question before, when the members, their keys or what was asked were others: if it refuses again "
            "at the next start, this run cannot go on; begin another one (another seed in the plan)"
        )


class NewSessionWanted(Exception):
    """Ends a session at a kept round, because parties are there that are not in it. The run goes on with them."""


@dataclass(frozen=True)
class Attendance:
    """How many of the parties that were asked must answer. A wave with fewer answers ends the session, and settles nothing."""

    everyone: bool = False
    fewest: int = 0  # where not everyone must; 0: as many as the aggregation needs

    @property
    def goes_on_without(self) -> bool:
        """Whether the run goes on without parties that took part before, and takes them in again when they come."""
        return self.fewest > 0

    def check(self, asked: Collection[str], answered: Collection[str]) -> None:
        """Refuses to go on with too few answers."""
        missing = [member for member in asked if member not in answered]
        if missing and (self.everyone or len(answered) < min(self.fewest, len(asked))):
            raise PartiesMissing(", ".join(missing))


ROUNDS_PREPARED = 64  # by one set-up of an aggregation that has one


@dataclass
class Rounds:
    """The rounds of one session of a coordinator, numbered one after the other."""

    members: tuple[str, ...]
    agreement: Agreement
    parties: Parties
    store: CoordinatorStore
    entropy: Entropy
    watch: Watch
    keys: Mapping[str, bytes] = field(default_factory=dict)
    attendance: Attendance = field(default_factory=Attendance)
    holds: Mapping[str, int] = field(default_factory=dict)  # how many documents each member has at least, by the roster
    serial: int = 0  # of the last round
    kept: int = 0  # of the round after which the coordinator's state was kept last
    numbers: dict[str, int] = field(default_factory=dict)  # how often each question was asked
    documents: int = 0  # of all parties together, if an opened answer about their words told it
    frequencies: Array | None = None  # of the agreed words, if opened sums of words told them
    remembered: dict[str, int] = field(default_factory=dict)  # by party: the last round after which it kept its memory
    _heard: set[str] = field(default_factory=set)  # parties that answered the invitation, and have not forgotten it
    _left_out: set[str] = field(default_factory=set)  # parties that missed what every answer of this session needs
    _lost: set[str] = field(default_factory=set)  # parties that cannot go on from that round
    _declined: set[str] = field(default_factory=set)  # parties that are there and refused: inviting them again changes nothing
    _demands: dict[str, Least] = field(default_factory=dict)  # by party: of every sum with its documents
    _preparations: int = 0
    _refused: list[Refused] = field(default_factory=list)  # of the exchange under way
    _silent: set[str] = field(default_factory=set)  # parties that missed a wave of it
    _most: int = 0  # bytes of a reply in the exchange under way
    few: FewPasses | None = None  # the same parties, where a message that needs no reply first waits for the next one
    _waiting: list[tuple[Wave, Callable[[Replies], None]]] = field(default_factory=list)  # and what its replies are for
    _invited_soon: bool = False  # whether the replies to the invitation are still to come

    def __post_init__(self) -> None:
        self.questions = Questions(self.agreement)
        self.session = self.entropy.bytes(32)  # a new one at every start: whatever was under way before is abandoned
        profile = self.agreement.profile
        documents = documents_held(profile, self.members, self.holds)
        roster = Roster(self.session, profile.digest, self.members, self.keys, documents)
        self.aggregation = profile.aggregation.coordinator(roster, self.store)
        self.ledgers = Countersigning(self.members, self._told, along=self.few is not None)
        self._expect(0, None)

    @property
    def parties_open(self) -> bool:
        """Whether the parties open the sums, so that this role never sees an answer to a question about documents."""
        return self.agreement.profile.aggregation.opened_by == "parties"

    def invite(self) -> None:
        """Invites every party, to go on from the last round after which it kept its memory.

        If the run goes on without parties anyway, one that lost that memory goes on without it. Where the parties train by
        themselves, none can, and one that missed a sum is out: its model is no longer that of the others.
        """
        self._invited_soon = True
        self._soon({member: self._invitation(self._resumed_from(member)) for member in self.members}, self._invited)

    def _invited(self, accepted: dict[str, wire.Accepted]) -> None:
        self._invited_soon = False
        if self._lost and not self.parties_open:
            accepted |= self._sent(dict.fromkeys(sorted(self._lost), self._invitation(0)))
            self.remembered |= dict.fromkeys(self._lost, 0)
        self._check_enough(accepted)

    def _resumed_from(self, member: str) -> int:
        return self.kept if self.parties_open else self.remembered.get(member, 0)

    def _invitation(self, resume_from: int) -> bytes:
        named = self.agreement.digest, self.agreement.profile.digest, self.members
        return wire.pack_request(self.session, wire.Invite(*named, resume_from))

    def tell(self, body: wire.Body) -> None:
        """Sends all parties a message that asks nothing of the documents. Enough of them must accept it."""

        def told(accepted: dict[str, wire.Accepted]) -> None:
            self._left_out |= set(self.members) - set(accepted)
            self._check_enough(accepted)

        self._soon(dict.fromkeys(self.members, wire.pack_request(self.session, body)), told)

    def _check_enough(self, accepted: Mapping[str, wire.Accepted]) -> None:
        self.attendance.check(self.members, accepted)
        if len(accepted) < (minimum := self.agreement.profile.minimum_parties):
            raise TooFewParties(len(accepted), len(self.members), minimum)

    def take_in(self) -> None:
        """Ends the session if parties are there that are not in it, and the run does not need them. Called at a kept round."""
        if self.attendance.goes_on_without and self.parties.present() - (self._heard - self._left_out) - self._declined:
            raise NewSessionWanted()

    def ask(self, question: str, state: State, *, keep: bool = False) -> Answer:
        if self.aggregation.prepared < 1:
            self.prepare()
        if self._invited_soon:  # what parties demand of a sum, and the heads of their ledgers, are in the replies
            self._send_waiting()
        begun, self.serial = time.perf_counter(), self.serial + 1
        self.watch.round_begins(self.serial)
        number = self.numbers.get(question, 0)
        asked = asked_of(self.members, self.agreement, question, number)
        shown = {member: self.questions.shown(question, state, member) for member in asked}
        about = shown[asked[0]]
        if self.parties_open:  # the shapes of the start are public; the state after it is the parties' alone
            shown = {member: {} for member in asked}
        counted: tuple[int, ...] = ()
        if self.attendance.goes_on_without and not self.parties_open:
            counted = tuple(self.remembered.get(member, 0) for member in asked)
        demands = [self._demands.get(member, Least()) for member in asked]  # with the most of them, every party answers
        least = Least(max(one.parties for one in demands), max(one.documents for one in demands))
        ask = wire.Ask(question, number, self.serial, asked, b"", shown[asked[0]], keep, counted)
        ask = replace(ask, least_parties=least.parties, least_documents=least.documents)
        _, route, cohort = compile_question(self.questions, self.session, ask, about, self.keys)
        self.numbers[question] = number + 1
        requests = self._requests(replace(ask, round_id=cohort.round_id), shown, route.terms)
        opened, traffic = self.exchange(cohort, route.terms, requests)
        seen, answer = route.seen_and_opened(opened, RoundContext(cohort, self.entropy, self.store))
        if keep:
            self.remembered |= dict.fromkeys(answer.survivors or ask.members, self.serial)
        row = (ask.serial, ask.question, ask.number, " ".join(answer.survivors), *traffic, time.perf_counter() - begun)
        self.store.later("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
        self.watch.opened(self.serial, seen)
        return answer

    def ask_and_keep(self, name: str, question: str, state: State) -> Answer:
        """The sum that was opened under this name before this start, or a new one, which is kept before anything follows it.

        No party answers the same question twice.
        """
        answer = self.kept_answer(name)
        if answer is None:
            answer = self.ask(question, state, keep=True)
            assert answer.total is not None
            facts = {"deviation": answer.deviation, "serial": self.serial, "numbers": self.numbers}
            self.store.keep_state(name, dict(answer.total), facts)
        return answer

    def kept_answer(self, name: str) -> Answer | None:
        """Goes on after the sum that was opened under this name before this start, if there is one."""
        kept = self.store.kept_state(name)
        if kept is None:
            return None
        total, facts = kept
        if self.serial < facts["serial"]:
            self.serial, self.numbers = int(facts["serial"]), dict(facts["numbers"])
        return Answer(total, deviation=float(facts["deviation"]))

    def _requests(self, ask: wire.Ask, shown: Mapping[str, State], terms: Terms) -> dict[str, bytes]:
        """Packs the question for each party, with what the others signed of its ledger where a budget is spent."""
        witnesses = self.ledgers.gather(self._here()) if self.questions.paid else {}
        if terms.needs is Needs.SUM and not witnesses:  # every party sees the same, so it is packed once
            return dict.fromkeys(ask.members, wire.pack_request(self.session, ask))
        whole = {m: replace(ask, state=shown[m], witnesses=witnesses.get(m, ())) for m in ask.members}
        return {member: wire.pack_request(self.session, one) for member, one in whole.items()}

    def exchange(self, cohort: Cohort, terms: Terms, requests: Mapping[str, bytes]) -> tuple[Answer, tuple[int, int]]:
        """Runs one round of the aggregation. Returns the opened answer, and the bytes from and to the parties."""
        self._expect(0, terms)
        traffic = self._carry(self.aggregation.round(cohort, terms, None), cohort.round_id, requests)
        with self._first_refusal():
            return self.aggregation.answer(cohort.round_id), traffic

    def prepare(self) -> None:
        """Runs the aggregation's set-up for the next rounds: keys and shares, nothing that depends on documents."""
        self._preparations += 1
        name = preparation_identity(self.session, self._preparations, ROUNDS_PREPARED)
        request = wire.pack_request(self.session, wire.Prepare(name, self._preparations, ROUNDS_PREPARED))
        self._expect(ROUNDS_PREPARED, None)
        self._carry(self.aggregation.prepare(ROUNDS_PREPARED), name, dict.fromkeys(self.members, request), prepares=True)
        self._left_out |= self._silent

    def share(self, purpose: str, about: State, exchange: Exchange, longest: int) -> None:
        if self._invited_soon:
            self._send_waiting()
        name = share_identity(self.session, purpose, about)
        request = wire.pack_request(self.session, wire.Share(name, purpose, about))
        self._most = longest + ROOM + len(self.members) * (LONGEST_SIGNED + 8)
        self._carry(exchange, name, dict.fromkeys(self.members, request), about_documents=False)
        self._left_out |= self._silent

    def _carry(
        self,
        exchange: Exchange,
        name: bytes,
        requests: Mapping[str, bytes],
        *,
        prepares: bool = False,
        about_documents: bool = True,
    ) -> tuple[int, int]:
        """Carries messages until the exchange ends. A party that does not answer in time has dropped out."""
        up = down = 0
        self._refused, self._silent = [], set()
        while requests:
            if self.few and prepares and self.aggregation.prepared >= 1:  # only receipts are still to come
                self._waiting.append(((requests, self._most), partial(self._take_receipts, exchange, name, requests)))
                break
            down += sum(map(len, requests.values()))
            came = self._wave(requests, about_documents=about_documents and not prepares and not up)
            requests, more = self._end_wave(exchange, name, requests, came)
            up += more
        return up, down

    def _end_wave(
        self, exchange: Exchange, name: bytes, requests: Mapping[str, bytes], replies: Replies
    ) -> tuple[Mapping[str, bytes], int]:
        """Takes the replies to a wave. Returns the requests of the next one, and how many bytes came."""
        up, taken = 0, []
        with closing(replies):
            for member, reply in replies:  # one at a time: all of them together may not fit into memory
                up += len(reply)
                if self._took(exchange, member, self._accepted(member, reply)):
                    taken.append(member)
        self._silent |= set(requests) - set(taken)
        with self._first_refusal():
            self.attendance.check(requests, taken)
            further = exchange.expire([m for m in requests if m not in taken])
        return {m: wire.pack_request(self.session, wire.Forward(name, bytes(p))) for m, p in further}, up

    def _take_receipts(self, exchange: Exchange, name: bytes, requests: Mapping[str, bytes], replies: Replies) -> None:
        """Takes the last replies of a set-up, which came along with those to the question after it."""
        self._end_wave(exchange, name, requests, replies)
        self._left_out |= self._silent

    def _took(self, exchange: Exchange, member: str, accepted: wire.Accepted | None) -> bool:
        """Treats a party with a wrong message as missing in this round, and records the reason."""
        if accepted is None:
            return False
        try:
            for parcel in accepted.parcels:
                exchange.receive(member, parcel)
        except Refused as refusal:
            self._refused.append(refusal)
            self._note(member, **named(refusal))
            return False
        return True

    def _note(self, member: str, name: str, reason: str) -> None:
        self.store.note("refusals", {"serial": self.serial, "party": member, "name": name, "reason": reason})
        self.watch.objected(member, name)

    @contextmanager
    def _first_refusal(self) -> Iterator[None]:
        """If too few parties are left because messages were refused, raises the first refusal."""
        try:
            yield
        except PartiesMissing as missing:
            raise missing from (self._refused[0] if self._refused else None)
        except TooFewParties as few:
            if self._refused:
                raise self._refused[0] from few
            raise

    def _told(self, bodies: Mapping[str, wire.Body]) -> dict[str, wire.Accepted]:
        accepted = self._sent(self._packed(bodies))
        self.attendance.check(bodies, accepted)
        return accepted

    def _packed(self, bodies: Mapping[str, wire.Body]) -> dict[str, bytes]:
        return {member: wire.pack_request(self.session, body) for member, body in bodies.items()}

    def _sent(self, requests: Mapping[str, bytes]) -> dict[str, wire.Accepted]:
        return self._outcomes(self._wave(requests))

    def _outcomes(self, replies: Replies) -> dict[str, wire.Accepted]:
        with closing(replies):
            outcomes = ((member, self._accepted(member, reply)) for member, reply in replies)
            return {member: accepted for member, accepted in outcomes if accepted is not None}

    def _soon(self, requests: Mapping[str, bytes], then: Callable[[dict[str, wire.Accepted]], None]) -> None:
        """Sends a wave that needs no reply before the next one; where passes are few, along with it."""
        if self.few:
            self._waiting.append(((requests, self._most), lambda replies: then(self._outcomes(replies))))
        else:
            then(self._sent(requests))

    def _told_soon(self, bodies: Mapping[str, wire.Body]) -> dict[str, wire.Accepted]:
        """Sends each party its message, and does without the replies."""
        self._soon(self._packed(bodies), lambda _: None)
        return {}

    def _wave(self, requests: Mapping[str, bytes], *, about_documents: bool = False) -> Replies:
        """Sends a wave, and yields its replies. Whatever waits goes out along with it, and is treated first."""
        if self.few is None:
            yield from self.parties.ask(requests, self._most)
            return
        waiting, self._waiting = self._waiting, []
        waiting += self._of_ledgers(self.ledgers.to_show(self._here()))
        after = self._of_ledgers(self.ledgers.to_lead()) if about_documents else []
        waves = [*(wave for wave, _ in waiting), (requests, self._most), *(wave for wave, _ in after)]
        replies = self.few.ask_in_one(waves)
        for (_, then), came in zip(waiting, replies, strict=False):
            then(came)
        yield from replies[len(waiting)]
        for (_, then), came in zip(after, replies[len(waiting) + 1 :], strict=True):
            then(came)

    def _send_waiting(self) -> None:
        """Sends what waits, where nothing else goes out before its replies are needed."""
        waiting, self._waiting = self._waiting, []
        replies = self.few.ask_in_one([wave for wave, _ in waiting]) if self.few else ()
        for (_, then), came in zip(waiting, replies, strict=True):
            then(came)

    def _here(self) -> frozenset[str]:
        return self.parties.present() if self.attendance.goes_on_without else frozenset(self.members)

    def _of_ledgers(self, step: LedgerStep) -> list[tuple[Wave, Callable[[Replies], None]]]:
        """What the parties sign of each other's ledgers next, as a wave that goes out along with another one."""
        bodies, then = step
        if not bodies or not self.questions.paid:
            return []
        return [((self._packed(bodies), self._most), lambda replies: then(self._outcomes(replies)))]

    def _accepted(self, member: str, reply: Message) -> wire.Accepted | None:
        """Returns a reply that accepts, and keeps the head of the party's ledger. Raises what the party refused.

        Returns nothing where the run goes on as if the party had not answered.
        """
        outcome = self._read(member, reply)
        if isinstance(outcome, wire.Refusal) and outcome.name == OutOfBudget.__name__ and not self.attendance.goes_on_without:
            raise NoBudgetLeft(member)
        if isinstance(outcome, wire.Refusal) and (self.attendance.goes_on_without or outcome.name in FORGOT):
            (self._heard.discard if outcome.name in FORGOT else self._heard.add)(member)
            self._note(member, outcome.name, "the party itself refused")
            if outcome.name == OutOfTurn.__name__:
                self._lost.add(member)
            elif outcome.name == BadState.__name__:  # of what every session says alike, as the list of words
                self._declined.add(member)
            return None
        if isinstance(outcome, wire.Refusal):
            raise PartyRefused(member, outcome.name)
        self._heard.add(member)
        self._declined.discard(member)
        if outcome.least_parties or outcome.least_documents:
            self._demands[member] = Least(outcome.least_parties, outcome.least_documents)
        if outcome.head:
            self.ledgers.heads[member] = outcome.head
        return outcome

    def _read(self, member: str, reply: Message) -> wire.Outcome:
        """Reads a reply. Where the run goes on without this party, bytes that are no reply count as its refusal."""
        try:
            session, outcome = wire.unpack_reply(reply, member, self._most)
            if isinstance(outcome, wire.Accepted) and session != self.session:
                raise PartyRefused(member, WrongSession.__name__)
        except (Malformed, PartyRefused) as problem:
            if not self.attendance.goes_on_without:
                raise
            return wire.Refusal(type(problem).__name__)
        return outcome

    def _expect(self, rounds: int, terms: Terms | None) -> None:
        """Bounds the replies by what a set-up of so many rounds, or a round with these terms, can need."""
        self._most = largest_reply(self.agreement.profile, len(self.members), rounds, terms)
