"""A coordinator that a test plays by hand, so that it can also lie. It is not the coordinator of a real run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from securetm.accounting.ledger import Ledger
from securetm.answers.route import compile_route
from securetm.contracts import Cohort, Least, State, Terms
from securetm.corpus.corpus import Corpus
from securetm.entropy import OperatingSystem
from securetm.federation.party.party import Party
from securetm.federation.party_store import PartyStore
from securetm.federation.questions import Questions, round_identity, state_digest
from securetm.federation.wire import wire
from securetm.plans.agreement import agree
from securetm.plans.profiles import cohort_of
from securetm.plans.schema import Plan

SESSION = bytes(range(32))


def make_party(name: str, plan: Plan, corpora: Mapping[str, Corpus], folder: Path) -> Party:
    """A real party with a store and a ledger of its own, for runs that spend no budget."""
    store, ledger = PartyStore(folder / name), Ledger.open(folder / f"{name}.ledger", name, None)
    return Party(name, tuple(corpora), agree(plan), corpora[name], store, OperatingSystem(), {}, ledger)


@dataclass
class Played:
    """What a coordinator of this plan would send, and whatever else the test wants to send instead."""

    plan: Plan
    members: tuple[str, ...]
    session: bytes = SESSION
    serial: int = 0
    keys: Mapping[str, bytes] = field(default_factory=dict)  # of the parties' roster, where they have one
    questions: Questions = field(init=False)

    def __post_init__(self) -> None:
        self.agreement = agree(self.plan)
        self.profile = self.agreement.profile
        self.questions = Questions(self.agreement)

    def send(self, party: Party, body: wire.Body, session: bytes | None = None) -> wire.Outcome:
        """What the party says to it. The coordinator has the party's roster."""
        self.keys = self.keys or party.keys
        reply = party.handle(wire.pack_request(self.session if session is None else session, body))
        return wire.unpack_reply(reply, party.name)[1]

    def invite(self, resume_from: int = 0) -> wire.Invite:
        return wire.Invite(self.agreement.digest, self.profile.digest, self.members, resume_from)

    def adopt(self, words: Sequence[str], *, candidates: bool = False) -> wire.Adopt:
        self.questions.adopt(tuple(words), candidates=candidates)
        return wire.Adopt("\n".join(words).encode(), candidates)

    def fresh(self) -> State:
        """A model that nobody has trained."""
        model = self.questions.agreement.model
        return model.for_party(model.start(self.questions.vocabulary, np.random.default_rng(self.plan.seed)), "")

    def terms(self, question: str, state: State, members: Sequence[str] | None = None) -> Terms:
        cohort = self._cohort(0, members or self.members)
        return compile_route(self.questions.make(question, state).terms, self.profile, cohort).terms

    def ask(
        self,
        question: str,
        state: State,
        *,
        number: int = 0,
        serial: int = 0,
        members: Sequence[str] = (),
        keep: bool = False,
        least_parties: int = 0,
        least_documents: int = 0,
    ) -> wire.Ask:
        """A question whose round id is right for what it says of itself."""
        self.serial = serial or self.serial + 1
        least = Least(least_parties, least_documents)
        cohort = replace(self._cohort(number, members or self.members), least=least)
        terms = compile_route(self.questions.make(question, state).terms, self.profile, cohort).terms
        if self.profile.aggregation.opened_by == "parties":  # they train by themselves, so no state comes with it
            state = {}
        about = state_digest(state, terms)
        meant = (question, cohort, self.serial, terms, self.profile.digest, about, self.questions.words(question))
        identity = round_identity(self.session, *meant)
        ask = wire.Ask(question, number, self.serial, cohort.members, identity, state, keep)
        return replace(ask, least_parties=least_parties, least_documents=least_documents)

    def altered(self, ask: wire.Ask, **changes: object) -> wire.Ask:
        """The same question with a field changed but the old round id."""
        return replace(ask, **changes)  # type: ignore[arg-type]

    def _cohort(self, number: int, members: Sequence[str]) -> Cohort:
        made = cohort_of(self.profile, tuple(members), number=number, seed=self.plan.seed)
        return replace(made, identities=tuple(self.keys.get(member, b"") for member in members))


def settled(played: Played, party: Party, words: Sequence[str]) -> None:
    """Invited, with a vocabulary agreed on."""
    policy = party.policy
    accepted = wire.Accepted(least_parties=policy.least_parties, least_documents=policy.least_documents)
    assert played.send(party, played.invite()) == accepted
    assert played.send(party, played.adopt(words)) == wire.Accepted()


def refusals(party: Party) -> list[tuple[str, str]]:
    """What the party wrote down about its refusals, in order."""
    return [(name, reason) for name, reason in party.store.rows("SELECT name, reason FROM refusals ORDER BY at")]
