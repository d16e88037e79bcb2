"""A party: it guards its documents and answers the questions it agreed to. Sans-I/O: one request in, one reply out.

It assumes that the coordinator lies. Every field is checked before documents are touched; a refusal leaves with its name only.
What goes wrong once they are touched stays here: the reply looks like any other, and the documents have no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from securetm.accounting.ledger import Ledger
from securetm.aggregation.plain import COORDINATOR
from securetm.aggregation.vectors import pack_vector, unpack_vector
from securetm.agreement import Agreement
from securetm.contracts import (
    Array,
    Cohort,
    Entropy,
    Exchange,
    Mechanism,
    Memory,
    Noised,
    Parcel,
    Query,
    Roster,
    RoundContext,
    Session,
    State,
    Terms,
)
from securetm.corpus.corpus import Corpus
from securetm.errors import CohortTooSmall, NotInCohort, Refused, UnknownRound, WrongSession
from securetm.federation import wire
from securetm.federation.documents import Documents, note_lengths, read_in
from securetm.federation.drawn import DrawnOnce
from securetm.federation.floor import check_batch, check_delta, check_kind, check_share
from securetm.federation.learner import Learner
from securetm.federation.limits import RequestLimits
from securetm.federation.notes import LONGEST_REASON, Notes
from securetm.federation.paying import spend_of
from securetm.federation.paying_errors import NoLedger
from securetm.federation.questions import HELD_OUT, TRAIN, Questions
from securetm.federation.refusal_errors import (
    AlreadyAnswered,
    AskedTooOften,
    BadState,
    Failed,
    NotInvited,
    OutOfTurn,
    WrongAgreement,
    WrongRound,
)
from securetm.federation.round import (
    digest_of_arrays,
    preparation_identity,
    question_identity,
    round_identity,
    state_digest,
)
from securetm.federation.store import Drawer, PartyStore
from securetm.federation.witness import BudgetGuard, quorum
from securetm.federation.words import agreed
from securetm.models.row_trial import check_rows
from securetm.profiles import cohort_of
from securetm.route import ClippedAnswer, Route, compile_route
from securetm.sessions.identities import identity_of
from securetm.toml_settings import digest

MOST_PREPARED = 1024  # rounds by one set-up


@dataclass
class Party:
    """One organisation: its documents, its own store, and the agreement that it accepted."""

    name: str
    members: tuple[str, ...]
    agreement: Agreement
    corpus: Corpus
    store: PartyStore
    entropy: Entropy
    keys: Mapping[str, bytes] = field(default_factory=dict)
    ledger: Ledger | None = None
    others: Drawer | None = None  # what it signed of the others' ledgers, kept as long as its own
    run: str = ""  # what this party calls the run in its ledger; it stays the same when the run is resumed
    _session: bytes = b""
    _last: int = 0
    _preparations: int = 0
    _memory: Memory = field(default_factory=dict)
    _lineage: bytes = b""  # names the questions that the memory came from
    _open_round: tuple[bytes, Exchange] | None = None
    _awaited: tuple[wire.Ask, Route, RoundContext] | None = None

    def __post_init__(self) -> None:
        check_share(self.name, self.corpus, self.agreement.profile, self.members)
        check_delta(self.name, self.corpus, self.agreement.profile, self.ledger)
        self.documents, self.notes = Documents(self.corpus), Notes(self.store)
        self.questions = Questions(self.agreement)
        check_kind(self.corpus, self.agreement)
        if self.agreement.budget is not None and (self.ledger is None or self.others is None):
            raise NoLedger(self.name, self.agreement.profile.name)
        self._limits = RequestLimits(self.agreement, self.members, self.questions)
        self._guard: BudgetGuard | None = None
        self._drawn = DrawnOnce(self.others, self.ledger) if self.ledger is not None and self.others is not None else None
        self._computed: dict[str, Any] = {}  # by mechanisms, for the next round
        opens = self.agreement.profile.aggregation.opened_by == "parties"
        self.learner = Learner(self.agreement, self.store) if opens else None

    def close(self) -> None:
        """Closes this party's files."""
        self.store.close()
        for opened in (self.ledger, self.others):
            if opened is not None:
                opened.close()

    @property
    def most_bytes(self) -> int:
        """Of the longest message that it takes at the moment: who carries messages need not take in more."""
        return max(self._limits.of_bodies().values())

    def handle(self, message: bytes) -> bytes:
        """Answers one request and never raises. What is not as agreed is refused by name; the reason stays in its own store."""
        session = b""
        try:
            session, body = wire.unpack_request(message, self._limits.of_bodies())
            parcels = self._act(session, body)
            outcome: wire.Outcome = wire.Accepted(parcels, self._guard.announce() if self._guard else b"")
        except Refused as refusal:
            outcome = self._refused(refusal)
        except Exception as failure:  # noqa: BLE001 - before documents are touched, or of this party's own disk and memory
            with suppress(Exception):  # a full disk keeps no note either
                self.notes.failed(failure)
            outcome = wire.Refusal(Failed.__name__)
        return wire.pack_reply(session, outcome)

    def _refused(self, refusal: Refused) -> wire.Refusal:
        """The name travels, and the reason is written down; it may quote the message, and must not fill the disk."""
        row = {"name": type(refusal).__name__, "reason": str(refusal)[:LONGEST_REASON]}
        with suppress(Exception):  # a full disk keeps no reason
            self.store.note("refusals", row)
        return wire.Refusal(type(refusal).__name__)

    def _act(self, session: bytes, body: wire.Body) -> tuple[bytes, ...]:
        if isinstance(body, wire.Invite):
            return self._join(session, body)
        if not self._session:
            raise NotInvited()
        if session != self._session:
            raise WrongSession()
        if isinstance(body, wire.Adopt):
            return self._adopt(body)
        if isinstance(body, wire.Prepare):
            return self._prepare(session, body)
        if isinstance(body, wire.Witness):
            return self._witness(body)
        if isinstance(body, wire.Links):
            return self._guarded().lead(body.statements)
        return self._answer(body) if isinstance(body, wire.Ask) else self._continue(body)

    # ---- joining ---------------------------------------------------------------------------------------------------

    def _join(self, session: bytes, invite: wire.Invite) -> tuple[bytes, ...]:
        """Accepts a session only under the plan, the profile and the roster that this party holds itself."""
        agreed = {
            "plan": invite.agreement == self.agreement.digest,
            "profile": invite.profile == self.agreement.profile.digest,
            "list of members": invite.members == self.members,
            "session": len(session) == 32 and self._session in (b"", session),
        }
        for what, same in agreed.items():
            if not same:
                raise WrongAgreement(what)
        self._open_round, self._awaited = None, None  # the seat of before is gone, and what it began with it
        self._resume(invite.resume_from)
        self._session, self._preparations = session, 0
        roster = Roster(session, self.agreement.profile.digest, self.members, self.keys)
        self._seat: Session = self.agreement.profile.aggregation.party(self.name, roster, self.entropy, self.store)
        self._guard = self._opened_guard(roster)
        self.questions.adopt(())  # the words come again after every invitation, in a resumed run perhaps the candidates
        self.documents = Documents(self.corpus)
        return ()

    def _opened_guard(self, roster: Roster) -> BudgetGuard | None:
        """So many of the others must sign where the ledger stands that no history beside it can be signed as well."""
        if self.ledger is None or self.others is None or self.agreement.budget is None:
            return None
        needed = quorum(len(self.members) - 1, self.agreement.profile.colluding)
        return BudgetGuard(self.ledger, identity_of(self.name, roster, self.store), self.others, needed, self.agreement.budget)

    def _resume(self, serial: int) -> None:
        """Goes back to what was kept after that round; rounds after it will be asked again."""
        memory: Mapping[str, Array] | None = {} if serial == 0 else self.store.kept_memory(serial)
        if memory is None:
            raise OutOfTurn(serial, max(self.store.kept_serials(), default=0))
        self.store.forget_after(serial)
        self._memory, self._last = dict(memory), serial
        self._lineage = self.store.kept_lineage(serial) if serial else b""

    def _adopt(self, adopt: wire.Adopt) -> tuple[bytes, ...]:
        """Takes the run's one list of words, or the candidates for it.

        Whether this party takes part was decided before by the documents it holds: how they meet the words changes nothing.
        """
        words = agreed(adopt, self.agreement, self.store)
        if (words, adopt.candidates) == (self.questions.vocabulary, self.questions.candidates):
            return ()  # it is read in already
        documents = read_in(words, self.corpus, self.agreement, self.notes)
        with self.notes.noted():
            note_lengths(documents.for_question(TRAIN), self.agreement.budget, self.store)
        if self.learner is not None and not adopt.candidates:
            self.learner.begin(words, self._memory)
        self.questions.adopt(words, candidates=adopt.candidates)  # last: what fails before is tried again when it is sent again
        self.documents = documents
        return ()

    def _prepare(self, session: bytes, prepare: wire.Prepare) -> tuple[bytes, ...]:
        """Takes part in the aggregation's set-up; how much of it is bounded, since each round costs keys."""
        if prepare.exchange != preparation_identity(session, prepare.number, prepare.rounds):
            raise WrongRound()
        if not 1 <= prepare.rounds <= MOST_PREPARED or prepare.number != self._preparations + 1:
            raise OutOfTurn(prepare.number, self._preparations)
        self._preparations += 1
        self._limits.parcel = self.agreement.profile.aggregation.longest(len(self.members), prepare.rounds, None)[1]
        return self._begin(prepare.exchange, self._seat.prepare(prepare.rounds))

    def _witness(self, witness: wire.Witness) -> tuple[bytes, ...]:
        return self._guarded().countersign(witness.heads, witness.links)

    def _guarded(self) -> BudgetGuard:
        if self._guard is None:
            raise OutOfTurn(0, self._last)
        return self._guard

    # ---- answering -------------------------------------------------------------------------------------------------

    def _answer(self, ask: wire.Ask) -> tuple[bytes, ...]:
        self._check_cohort(ask.members)
        query = self.questions.make(ask.question, self._about(ask))
        cohort = self._cohort(ask, query.terms)
        route = compile_route(query.terms, self.agreement.profile, cohort)
        terms = route.terms
        about = state_digest(ask.state, terms)  # of what came with it
        under, words = self.agreement.profile.digest, self.questions.words(ask.question)
        meant = (ask.question, cohort, ask.serial, terms, under, about, words)
        if ask.round_id != round_identity(self._session, *meant):
            raise WrongRound()
        if ask.number >= self.questions.numbers(ask.question):
            raise AskedTooOften(ask.question, ask.number)
        check_batch(terms, self.agreement.profile, cohort, len(self.members))
        self._limits.parcel = self.agreement.profile.aggregation.longest(len(self.members), 0, terms)[1]
        if self._guard is not None:
            self._guard.hear(ask.witnesses)
        if terms.data_only:
            return self._answer_once(ask, query, cohort, route)
        return self._answer_now(ask, query, cohort, route)

    def _answer_once(self, ask: wire.Ask, query: Query, cohort: Cohort, route: Route) -> tuple[bytes, ...]:
        """The corpus alone is asked about once: the same question gets the same bytes, another cohort gets none."""
        terms = route.terms
        asked = digest([ask.question, list(cohort.members), list(self.questions.vocabulary), terms.size])
        stored = self.store.rows("SELECT asked, vector FROM answered WHERE question = ?", ask.question)
        if stored and (stored[0][0] != asked or terms.noised is Noised.SHARE):  # one share of noise twice is no more noise
            raise AlreadyAnswered()
        if not stored:
            self._check_first(ask)
            return self._answer_now(ask, query, cohort, route, once=asked)
        if ask.keep:  # what was kept when it was answered first is gone if the session was begun again
            self.store.keep_memory(ask.serial, self._memory, self._lineage)
        self._last = max(self._last, ask.serial)
        vector = unpack_vector(bytes(stored[0][1]), terms, self.name)
        return self._begin(cohort.round_id, self._seat.round(cohort, terms, vector))

    def _answer_now(self, ask: wire.Ask, query: Query, cohort: Cohort, route: Route, *, once: bytes = b"") -> tuple[bytes, ...]:
        """Draws the answer anew; what is asked only once is on disk before it leaves."""
        if ask.serial <= self._last:
            raise OutOfTurn(ask.serial, self._last)
        terms = route.terms
        documents = self.documents.for_question(ask.question)
        context = RoundContext(cohort, self.entropy, self.store, self._drawn, self._computed)
        asked = (ask.question, ask.number, digest(list(cohort.members)), self._meant(ask))
        if not terms.data_only:
            self.store.check_asked(*asked)  # before anything is paid for it, and what was not paid for binds nothing
        self._pay(ask, route, documents, context)
        if not terms.data_only:
            self.store.note_asked(*asked)
        rng = np.random.default_rng([self.agreement.plan.seed, ask.serial])
        answer = self._clipped_answer(query, documents, route, context, rng)
        self._last = ask.serial
        if self._memory:  # a function of the documents and of the questions that it came from
            self._lineage = self._meant(ask)
        if self.learner is not None and not terms.data_only:  # all parties learn by it, and by the same bytes when asked again
            answer = self._as_before(ask, answer, terms)
        if once:
            vector = pack_vector(answer.vector, terms)
            self.store.now("INSERT INTO answered VALUES (?, ?, ?)", ask.question, once, vector)
        parcels = self._begin(cohort.round_id, self._seat.round(cohort, terms, answer.vector))
        self._awaited = (ask, route, context)
        with self.notes.noted():
            self._remember(ask, answer, sum(map(len, parcels)))
        return parcels

    def _clipped_answer(
        self, query: Query, documents: Corpus, route: Route, context: RoundContext, rng: np.random.Generator
    ) -> ClippedAnswer:
        """The answer of the documents; where that fails the answer of no document, which looks like any other."""
        memory = dict(self._memory)
        with self.notes.noted():
            answer = route.answer(query, documents, context, memory, rng)
            self._memory = memory
            return answer
        return route.empty_answer(context)

    def _meant(self, ask: wire.Ask) -> bytes:
        """All that an answer to this question depends on beside the documents, but for the coins of noise."""
        state = {} if self.learner is not None and ask.question in (TRAIN, HELD_OUT) else ask.state
        about = [digest_of_arrays(state).hex(), self.questions.words(ask.question).hex(), self._lineage.hex()]
        return digest([ask.question, ask.number, ask.serial, *about])

    def _as_before(self, ask: wire.Ask, answer: ClippedAnswer, terms: Terms) -> ClippedAnswer:
        """The vector that this number was answered with first: a last digit that moved would be another model everywhere."""
        vector = self.store.hold_answer(ask.question, ask.number, pack_vector(answer.vector, terms))
        return replace(answer, vector=unpack_vector(vector, terms, self.name))

    def _check_first(self, ask: wire.Ask) -> None:
        """A budget composes questions in an order that is fixed in advance: once about the corpus, before any training."""
        if self._guard and any(self._guard.was_asked(self.run, question) for question in (ask.question, TRAIN)):
            raise OutOfTurn(ask.serial, self._last)

    def _pay(self, ask: wire.Ask, route: Route, documents: Corpus, context: RoundContext) -> None:
        """Affords and records before anything is drawn: a crash after this counts as spent, whatever was drawn by then.

        Noise that is drawn once per corpus is charged once: what was kept of it, and paid for, is used again for nothing.
        """
        if self._guard is None or self._drawn is None or self.agreement.budget is None:
            return
        kept: tuple[Mechanism, ...] = ()
        with self.notes.noted():  # where it cannot be told what was kept, all is paid for
            kept = route.drawn_before(documents, context)
        spend = spend_of(route, kept)
        assert spend is not None or kept  # what was admitted under a budget is noised
        self._drawn.paid = False
        if spend is None:
            return
        check_rows(self.agreement.model, self.agreement.budget.unit)
        profile = self.agreement.profile
        who = {"profile": profile.name, "digest": profile.digest.hex(), "unit": self.agreement.unit.value}
        self._guard.charge(self.run, spend, {**who, "question": ask.question, "serial": ask.serial})
        self._drawn.paid = any(mechanism.once and mechanism not in kept for mechanism in profile.mechanisms)

    def _begin(self, name: bytes, exchange: Exchange) -> tuple[bytes, ...]:
        self._open_round = (name, exchange)
        return _to_coordinator(exchange.begin())

    def _continue(self, forward: wire.Forward) -> tuple[bytes, ...]:
        if self._open_round is None or self._open_round[0] != forward.round_id:
            raise UnknownRound(forward.round_id.hex()[:16])
        parcels = _to_coordinator(self._open_round[1].receive(COORDINATOR, forward.parcel))
        if self.learner is not None and self._awaited is not None and self._awaited[0].round_id == forward.round_id:
            with self.notes.noted(), np.errstate(all="ignore"):  # it learns of a total that the coordinator may not see
                self._learn(self.learner, *self._awaited)
        return parcels

    def _about(self, ask: wire.Ask) -> State:
        """What the question is about: what came with it, or this party's own state where the parties learn by themselves."""
        if self.learner is None or ask.question not in (TRAIN, HELD_OUT):
            return ask.state
        if ask.state:
            raise BadState("the parties learn by themselves, so no state may come with a question")
        return self.learner.about(ask.question)

    def _learn(self, learner: Learner, ask: wire.Ask, route: Route, context: RoundContext) -> None:
        """Run by a party where the parties open the sum: it updates its own copy of the model, and sends nothing."""
        self._awaited = None
        with self.notes.noted():
            learner.learn(ask.question, route.opened(self._seat.answer(ask.round_id), context))
        if ask.keep:
            self.store.keep_memory(ask.serial, learner.remember(self._memory), self._lineage)

    def _check_cohort(self, members: Sequence[str]) -> None:
        strangers = [m for m in members if m not in self.members]
        if strangers or self.name not in members:
            raise NotInCohort(strangers[0] if strangers else self.name)
        if len(members) < self.agreement.profile.minimum_parties:
            raise CohortTooSmall(len(members), self.agreement.profile.minimum_parties)

    def _cohort(self, ask: wire.Ask, terms: Terms) -> Cohort:
        one = {"round_id": ask.round_id, "number": ask.number, "question": question_identity(ask.question, ask.number, terms)}
        return cohort_of(self.agreement.profile, ask.members, seed=self.agreement.plan.seed, **one)

    def _remember(self, ask: wire.Ask, answer: ClippedAnswer, sent: int) -> None:
        """This party's own record of the round; kept on disk where the coordinator keeps its state too."""
        documents, loss = answer.documents, answer.loss
        self.notes.lost(ask.serial, ask.question, answer.lost)
        if self._guard is not None:  # how many took part stays unknown, even here: the amplification rests on it
            documents, loss = 0, float("nan")
        row = (ask.serial, ask.question, ask.number, documents, loss, sent)
        self.store.later("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?, ?, ?, ?)", *row)
        if ask.keep and self.learner is None:
            self.store.keep_memory(ask.serial, self._memory, self._lineage)


def _to_coordinator(parcels: Sequence[Parcel]) -> tuple[bytes, ...]:
    return tuple(parcel for receiver, parcel in parcels if receiver == COORDINATOR)
