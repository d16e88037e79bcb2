"""How a party answers one question. The order is fixed: check, pay, compute, keep, enter the digest, send, record.

No document is read before the question is checked. A failure after that stays with the party: the reply looks like any other,
and the documents have no part in it.
"""

from __future__ import annotations

import math

import numpy as np

from securetm.accounting.ledger.all_runs import NO_BUDGET
from securetm.aggregation.vectors import pack_vector, unpack_vector
from securetm.answers.route import ClippedAnswer, Route
from securetm.contracts import Cohort, Mechanism, Message, Noised, Query, RoundContext, State
from securetm.corpus.corpus import Corpus
from securetm.data_classes import dataclass
from securetm.errors import CohortTooSmall, NotInCohort
from securetm.federation.budget.guard import PaidQuestion
from securetm.federation.budget.prices import spend_of
from securetm.federation.document_minimum import check_batch, check_demands
from securetm.federation.party.session import Awaited, JoinedSession
from securetm.federation.party.state import PartyState
from securetm.federation.party_store import Asked, KeptAnswer
from securetm.federation.questions import (
    BUCKET_SUMS,
    BUCKETS,
    HELD_OUT,
    JOINT,
    MARKS,
    PAIRS,
    TRAIN,
    asked_of,
    compile_question,
    digest_of_arrays,
    is_fixed,
)
from securetm.federation.refusal_errors import (
    AlreadyAnswered,
    AnotherSample,
    AskedTooOften,
    BadState,
    CannotTakePart,
    OutOfTurn,
    QuestionNotAllowed,
    WrongRound,
)
from securetm.federation.wire import wire
from securetm.models.trials import check_rows
from securetm.settings import digest


def answer(session: JoinedSession, ask: wire.Ask) -> tuple[Message, ...]:
    """Returns the first messages of the round that this question begins, or refuses."""
    question = _checked(session, ask)
    own, terms = session.own, question.route.terms
    own.limits.parcel = own.agreement.profile.aggregation.longest(len(own.members), 0, terms)[1]
    if session.guard is not None:
        session.guard.witness.hear(ask.witnesses)
    else:
        _enter_unbounded(own)
    return question.answer_once() if terms.data_only else question.answer_now()


# ---- the checks ----------------------------------------------------------------------------------------------------


def _checked(session: JoinedSession, ask: wire.Ask) -> Answering:
    """Checks the question. The round id must say that the coordinator means the same as this party."""
    own = session.own
    if not own.policy.allows_question(ask.question):
        raise QuestionNotAllowed(ask.question)
    if ask.question in (BUCKETS, MARKS, BUCKET_SUMS) and not own.questions.key:
        raise BadState("the parties share no key yet")
    members = ask.members
    strangers = [member for member in members if member not in own.members]
    if strangers or own.name not in members:
        raise NotInCohort(strangers[0] if strangers else own.name)
    if len(members) < (least := own.agreement.profile.minimum_parties):
        raise CohortTooSmall(len(members), least)
    if is_fixed(own.agreement) and members != asked_of(own.members, own.agreement, ask.question, ask.number):
        raise AnotherSample(ask.question, ask.number)
    query, route, cohort = compile_question(own.questions, session.identity, ask, _about(own, ask), own.keys)
    if ask.round_id != cohort.round_id:
        raise WrongRound()
    if ask.number >= own.questions.numbers(ask.question):
        raise AskedTooOften(ask.question, ask.number)
    # A budget composes questions in a fixed order.
    later = {JOINT: (PAIRS, TRAIN), BUCKET_SUMS: (PAIRS, TRAIN), PAIRS: (TRAIN,)}.get(ask.question, ())
    if session.guard is not None and any(session.guard.was_asked(question) for question in later):
        raise OutOfTurn(ask.serial, own.store.last)
    check_batch(route.terms, own.agreement.profile, cohort, len(own.members))
    check_demands(own.policy, own.agreement.profile, cohort, len(own.members))
    return Answering(session, ask, query, cohort, route)


def _about(own: PartyState, ask: wire.Ask) -> State:
    """Returns the state that the question is about: the one that came with it, or the party's own where the parties train."""
    if own.learner is None or ask.question not in (MARKS, TRAIN, HELD_OUT):
        return ask.state
    if ask.state:
        raise BadState("the parties learn by themselves, so no state may come with a question")
    return own.learner.about(ask.question)


def _enter_unbounded(own: PartyState) -> None:
    """Enters in the ledger that nothing bounds what this run tells, before its first answer leaves."""
    profile, ledger = own.agreement.profile, own.ledger
    assert ledger is not None  # no party starts without one
    account = ledger.account(own.run)
    if ledger.ended or account is None or not account.unbounded:
        about = {"profile": profile.name, "digest": profile.digest.hex()}
        ledger.release(own.run, NO_BUDGET.format(profile=profile.name), about)


# ---- the answer ----------------------------------------------------------------------------------------------------


@dataclass
class Answering:
    session: JoinedSession
    ask: wire.Ask
    query: Query
    cohort: Cohort
    route: Route

    def __post_init__(self) -> None:
        self.own = self.session.own

    def answer_once(self) -> tuple[Message, ...]:
        """Answers a question about the corpus alone. Asked again, it gets the same bytes, and another cohort gets none."""
        ask, own, terms = self.ask, self.own, self.route.terms
        asked = digest([ask.question, list(self.cohort.who), list(own.questions.vocabulary), terms.size])
        kept = own.store.asked_once(ask.question)
        paid = self._paid_question(asked, given_once=True)
        if not kept:
            guard = self.session.guard  # a budget composes questions in a fixed order: these come before the training
            if guard and any(guard.was_asked(question) for question in (PAIRS, TRAIN)):
                raise OutOfTurn(ask.serial, own.store.last)
            if paid is not None and paid.entry is None and paid.guard.was_asked(ask.question):
                raise CannotTakePart()
            return self.answer_now(once=asked)
        never_left = paid is not None and paid.entry is not None and not paid.entry.answer
        if kept != asked or (terms.noised is Noised.SHARE and not never_left):  # the same share twice is no more noise
            raise AlreadyAnswered()
        if ask.keep:  # what was kept when it was answered first is gone if the session was begun again
            own.store.keep_memory(ask.serial)
        own.store.last = max(own.store.last, ask.serial)
        vector = own.store.only_answer(ask.question, terms, own.name)
        if paid is not None:
            paid.settle(vector, terms)
        return self._send(vector, RoundContext(self.cohort, own.entropy, own.store))

    def answer_now(self, *, once: bytes = b"") -> tuple[Message, ...]:
        """Computes a new answer. With `once`, it is written to disk before it leaves, and never computed again."""
        ask, own = self.ask, self.own
        if ask.serial <= own.store.last:
            raise OutOfTurn(ask.serial, own.store.last)
        if own.learner is not None and (ask.serial != own.store.last + 1 or self.session.awaited is not None):
            raise OutOfTurn(ask.serial, own.store.last)  # it missed a sum that the others learned from
        if own.agreement.plan.federation.cohort and ask.serial != own.store.last + 1:
            self.session.aggregation.missed_rounds()
        if ask.after and not once:
            own.store.go_on_from(ask.after[ask.members.index(own.name)])
        documents = own.documents.for_question(ask.question)
        context = RoundContext(self.cohort, own.entropy, own.store, own.drawn, own.computed)
        paid = self._paid_question(once or self.question_digest(), given_once=bool(once) or self.is_kept)
        if once:
            self._pay(paid, documents, context)
        else:  # checked before it is paid for, and written after: a question that is not paid for binds the party to nothing
            asked: Asked = (ask.question, ask.number, self.cohort_digest(), self.question_digest())
            own.store.check_asked(*asked)
            before = own.store.last_answer(ask.question) if self.is_kept else None
            if before is not None and before.asked == asked:
                return self.resend(before, paid, context)
            self._pay(paid, documents, context)
            own.store.note_asked(*asked)
        begun = own.clock()
        clipped = self.clipped_answer(documents, context)
        own.seconds_with_documents = own.clock() - begun
        if once:
            own.store.keep_only_answer(ask.question, once, clipped.vector, self.route.terms)
            vector = clipped.vector
        else:
            vector = self._keep(clipped.vector, asked, context)
        return self.send_and_record(vector, paid, context, clipped)

    @property
    def is_kept(self) -> bool:
        """Whether an answer that was paid for is kept and given again.

        Only noise that is in the vector makes it one released value. A share of noise protects only the sum, so the aggregation
        must hold a question to one list of survivors.
        """
        noised, names = self.route.terms.noised, self.own.agreement.profile.aggregation.names_survivors
        return self.session.guard is not None and (noised is Noised.WHOLE or (noised is Noised.SHARE and names))

    def resend(self, before: KeptAnswer, paid: PaidQuestion | None, context: RoundContext) -> tuple[Message, ...]:
        """Gives the kept answer again: the same vector, the memory that came with it, and no charge."""
        terms = self.route.terms
        self.own.store.memory, context.surplus[:] = dict(before.memory), before.surplus
        vector = unpack_vector(before.vector, terms, self.own.name)
        return self.send_and_record(vector, paid, context, ClippedAnswer({}, 0, math.nan, 0))

    def send_and_record(
        self, vector: State, paid: PaidQuestion | None, context: RoundContext, clipped: ClippedAnswer
    ) -> tuple[Message, ...]:
        """Sends an answer that is on disk where it must not change, once the ledger has its digest, and records it."""
        ask, own = self.ask, self.own
        if paid is not None:
            paid.settle(vector, self.route.terms)
        if own.store.memory:  # they depend on the documents and on every question that they came from
            own.store.lineage = self.question_digest()
        own.store.last = own.store.after = ask.serial
        parcels = self._send(vector, context)
        with own.failure_log.logged():  # this party's record of the round, and its memory where the coordinator keeps its state
            own.failure_log.lost(ask.serial, ask.question, clipped.lost)
            own.failure_log.rows_failed(clipped.failures)
            documents, loss = clipped.documents, clipped.loss
            if self.session.guard is not None:  # how many took part stays unknown, even here: the amplification rests on it
                documents, loss = 0, float("nan")
            row = (ask.serial, ask.question, ask.number, documents, loss, sum(map(len, parcels)))
            own.store.later("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?, ?, ?, ?)", *row)
            if ask.keep and own.learner is None:
                own.store.keep_memory(ask.serial)
        return parcels

    def _paid_question(self, asked: bytes, *, given_once: bool) -> PaidQuestion | None:
        """Returns what the ledger knows of this question; None where no budget is spent."""
        guard, ask = self.session.guard, self.ask
        if guard is None:
            return None
        return PaidQuestion(guard, ask.question, ask.number, self.cohort_digest().hex(), asked.hex(), given_once)

    def _pay(self, paid: PaidQuestion | None, documents: Corpus, context: RoundContext) -> None:
        """Charges the ledger before noise is drawn. A crash after this counts as spent.

        Noise that is drawn once per corpus is charged once; kept noise is used again without a charge.
        """
        own, agreement = self.own, self.own.agreement
        if paid is None or own.drawn is None:
            return
        paid.check_new(self.route.terms)
        kept: tuple[Mechanism, ...] = ()
        with own.failure_log.logged():  # if the kept noise cannot be read, the answer is paid for in full
            kept = self.route.drawn_before(documents, context)
        spend = spend_of(self.route, kept)
        assert spend is not None or kept  # what was admitted under a budget is noised
        own.drawn.paid = False
        if spend is None:
            return
        check_rows(agreement.model, agreement.unit)
        who = {"profile": agreement.profile.name, "digest": agreement.profile.digest.hex(), "unit": agreement.unit.value}
        paid.pay(spend, {**who, "serial": self.ask.serial})
        own.drawn.paid = any(mechanism.once and mechanism not in kept for mechanism in agreement.profile.mechanisms)

    def question_digest(self) -> bytes:
        """Returns the digest of all that the answer depends on besides documents and noise."""
        ask, own = self.ask, self.own
        state = {} if own.learner is not None and ask.question in (TRAIN, HELD_OUT) else ask.state
        about = [digest_of_arrays(state).hex(), own.questions.words(ask.question).hex(), own.store.lineage.hex()]
        return digest([ask.question, ask.number, ask.serial, *about])

    def clipped_answer(self, documents: Corpus, context: RoundContext) -> ClippedAnswer:
        """Returns the answer of the documents. If that fails, the answer of no document, which looks like any other."""
        memory, rng = dict(self.own.store.memory), np.random.default_rng([self.own.agreement.plan.seed, self.ask.serial])
        with self.own.failure_log.logged():
            keeping = self.own.keeping(self.ask.serial, self.cohort.round_id)
            clipped = self.route.answer(self.query, documents, context, memory, rng, self.own.engine, keeping)
            self.own.store.memory = memory
            return clipped
        return self.route.empty_answer(context)

    def _keep(self, vector: State, asked: Asked, context: RoundContext) -> State:
        """Writes the vector to disk where it must not change, and returns what may leave.

        Where the parties train, that is the first answer to this number: their models differ if a last digit differs. Where
        noise in it was paid for, the next answer takes its place.
        """
        ask, own, terms = self.ask, self.own, self.route.terms
        if own.learner is not None:
            first = own.store.first_answer(ask.question, ask.number, pack_vector(vector, terms))
            vector = unpack_vector(first, terms, own.name)
        if self.is_kept:
            own.store.keep_answer(asked, pack_vector(vector, terms), context.surplus)
        return vector

    def cohort_digest(self) -> bytes:
        """Returns the digest of the members and their identities: one that came in another's place is somebody else."""
        return digest(list(self.cohort.who))

    def _send(self, vector: State, context: RoundContext) -> tuple[Message, ...]:
        exchange = self.session.aggregation.round(self.cohort, self.route.terms, vector, context.surplus)
        parcels = self.session.open(self.cohort.round_id, exchange)
        self.session.awaited = Awaited(self.ask, self.route, context) if self.own.learner is not None else None
        with self.own.failure_log.logged():
            self.own.watch.answered(self.ask.question, self.ask.number, self.ask.serial, sum(map(len, parcels)))
        return parcels
