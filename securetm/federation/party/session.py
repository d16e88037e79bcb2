"""One session of a party, from an invitation to the next one: the aggregation's session, and the exchange that is open in it.

It carries the messages of an aggregation. How a question is answered is decided in `answering.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from securetm.answers.route import Route
from securetm.contracts import Exchange, Message, Parcel, Roster, RoundContext, Session
from securetm.data_classes import dataclass
from securetm.errors import UnknownRound
from securetm.federation.budget.guard import BudgetGuard
from securetm.federation.budget.signing import LedgerWitness
from securetm.federation.budget.witness import quorum
from securetm.federation.document_minimum import documents_held
from securetm.federation.party.state import PartyState
from securetm.federation.questions import preparation_identity
from securetm.federation.refusal_errors import OutOfTurn, TooManySetups, WrongRound
from securetm.federation.wire import wire
from securetm.sessions.identities import COORDINATOR, identity_of

MOST_PREPARED = 1024  # rounds by one set-up


@dataclass
class Awaited:
    """An answer that the parties open themselves. This party waits for it once it has sent its own."""

    ask: wire.Ask
    route: Route
    context: RoundContext


@dataclass
class JoinedSession:
    """What a party holds from one invitation to the next."""

    own: PartyState
    identity: bytes  # of the session, 32 bytes
    aggregation: Session
    guard: BudgetGuard | None  # of the budget, where there is one
    preparations: int = 0
    open_exchange: tuple[bytes, Exchange] | None = None  # the round or set-up under way, by its name
    awaited: Awaited | None = None

    @classmethod
    def begin(cls, own: PartyState, identity: bytes) -> JoinedSession:
        """Begins a session under the party's own agreement. Nothing is open in it."""
        profile = own.agreement.profile
        documents = documents_held(profile, own.members, own.holds)
        roster = Roster(identity, profile.digest, own.members, own.keys, documents)
        guard = None
        if own.ledger is not None and own.others is not None and profile.budget is not None:
            needed = quorum(len(own.members) - 1, profile.colluding)  # so many sign no second history of the ledger
            me = identity_of(own.name, roster, own.store)
            witness = LedgerWitness(own.ledger, me, own.others, needed, own.ledger_tag)
            guard = BudgetGuard(own.ledger, witness, own.run, profile.budget)
        return cls(own, identity, profile.aggregation.party(own.name, roster, own.entropy, own.store), guard)

    def prepare(self, prepare: wire.Prepare) -> tuple[Message, ...]:
        """Takes part in the aggregation's set-up. Its size and the number of set-ups are bounded: each round costs keys."""
        if prepare.exchange != preparation_identity(self.identity, prepare.number, prepare.rounds):
            raise WrongRound()
        if not 1 <= prepare.rounds <= MOST_PREPARED or prepare.number != self.preparations + 1:
            raise OutOfTurn(prepare.number, self.preparations)
        if prepare.number > (most := self.own.questions.most_answers()):  # a set-up serves one answer at least
            raise TooManySetups(most)
        self.preparations += 1
        self.own.limits.parcel = self.own.agreement.profile.aggregation.longest(len(self.own.members), prepare.rounds, None)[1]
        return self.open(prepare.exchange, self.aggregation.prepare(prepare.rounds))

    def open(self, name: bytes, exchange: Exchange) -> tuple[Message, ...]:
        """Opens an exchange in the place of the one before, and returns its first messages."""
        self.open_exchange = (name, exchange)
        return _to_coordinator(exchange.begin())

    def forward(self, forward: wire.Forward) -> tuple[Message, ...]:
        """Passes a message to the exchange under way, and returns its answer."""
        if self.open_exchange is None or self.open_exchange[0] != forward.round_id:
            raise UnknownRound(forward.round_id.hex()[:16])
        parcels = _to_coordinator(self.open_exchange[1].receive(COORDINATOR, forward.parcel))
        learner, awaited = self.own.learner, self.awaited
        if learner is None or awaited is None or awaited.ask.round_id != forward.round_id:
            return parcels
        self.awaited = None  # also if it does not open: a refusal of the next question would tell of the key and the content
        # The parties learn from a total that the coordinator may not see, so no failure shows in the reply.
        with self.own.failure_log.logged(), np.errstate(all="ignore"):
            with self.own.failure_log.logged():
                opened = awaited.route.opened(self.aggregation.answer(forward.round_id), awaited.context)
                learner.learn(awaited.ask.question, opened)
            if awaited.ask.keep:
                self.own.store.keep_memory(awaited.ask.serial, learner.remember(self.own.store.memory))
        return parcels


def _to_coordinator(parcels: Sequence[Parcel]) -> tuple[Message, ...]:
    return tuple(parcel for receiver, parcel in parcels if receiver == COORDINATOR)
