"""A party: it guards its documents and answers the questions that it agreed to. Sans-I/O: one request in, one reply out.

It assumes that the coordinator lies. Every field is checked before documents are read, and a refusal leaves with its name only.
A failure after that stays here: the reply looks like any other, and the documents have no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from securetm.contracts import Message
from securetm.data_classes import dataclass
from securetm.errors import Malformed, Refused, WrongSession
from securetm.federation.origins import product_of
from securetm.federation.party.answering import answer
from securetm.federation.party.documents import PartyDocuments
from securetm.federation.party.hidden_words import share, shown_words
from securetm.federation.party.session import JoinedSession
from securetm.federation.party.state import PartyState
from securetm.federation.party.words import adopt_words
from securetm.federation.refusal_errors import BadState, Failed, NotInvited, OutOfTurn, WrongAgreement
from securetm.federation.release import release
from securetm.federation.store import named, write_bytes
from securetm.federation.wire import wire
from securetm.plans.profiles import BLIND

WORDS = "vocabulary.txt"


@dataclass
class Party(PartyState):
    """The party as the coordinator meets it: requests in, replies out."""

    session: JoinedSession | None = None  # None before the first invitation
    heard: str = ""  # what the last message was: a question by its name, another body by its own; empty if it could not be read

    @property
    def most_bytes(self) -> int:
        """The bytes of the longest message that it reads now. A carrier need not read more."""
        return max(self.limits.of_bodies().values())

    def handle(self, message: bytes) -> Message:
        """Answers one request and never raises. A wrong request is refused by name; the reason stays in the party's store."""
        identity, self.heard = b"", ""
        try:
            identity, body = self._read(message)
            self.heard = body.question if isinstance(body, wire.Ask) else type(body).__name__.lower()
            parcels = self._act(identity, body)
            guard = self.session.guard if self.session is not None else None
            demands = (self.policy.least_parties, self.policy.least_documents) if isinstance(body, wire.Invite) else ()
            outcome: wire.Outcome = wire.Accepted(parcels, guard.witness.announce() if guard is not None else b"", *demands)
        except Refused as refusal:
            with suppress(Exception):  # a full disk keeps no reason
                self.store.note("refusals", named(refusal))
                self.watch.refuses(refusal)
            outcome = wire.Refusal(type(refusal).__name__)
        except Exception as failure:  # noqa: BLE001 - before documents are touched, or of this party's own disk and memory
            with suppress(Exception):
                self.failure_log.failed(failure)
            outcome = wire.Refusal(Failed.__name__)
        return wire.pack_reply(identity, outcome)

    def _read(self, message: bytes) -> tuple[bytes, wire.Body]:
        """Reads a request. Before an invitation a party does not know how long the messages of a session may be."""
        try:
            return wire.unpack_request(message, self.limits.of_bodies())
        except Malformed as malformed:
            if self.session is None and wire.body_of(message) not in ("", "invite"):
                raise NotInvited() from malformed
            raise

    def _act(self, identity: bytes, body: wire.Body) -> tuple[Message, ...]:
        """Accepts an invitation at any time, and every other message only in the session that the party joined last."""
        if isinstance(body, wire.Invite):
            return self._join(identity, body)
        if self.session is None:
            raise NotInvited()
        if identity != self.session.identity:
            raise WrongSession()
        if isinstance(body, wire.Witness | wire.Links):
            if (guard := self.session.guard) is None:
                raise OutOfTurn(0, self.store.last)
            if isinstance(body, wire.Witness):
                return guard.witness.countersign(body.heads, body.links)
            return guard.witness.lead(body.statements)
        accepted: Mapping[type, Callable[[Any], tuple[Message, ...]]] = {
            wire.Adopt: partial(adopt_words, self),
            wire.Prepare: self.session.prepare,
            wire.Ask: partial(answer, self.session),
            wire.Share: partial(share, self.session),
            wire.Forward: self.session.forward,
            wire.Finish: partial(keep_model, self),
        }
        return accepted[type(body)](body)

    def _join(self, identity: bytes, invite: wire.Invite) -> tuple[Message, ...]:
        """Accepts a session only under the plan, the profile and the roster that this party holds itself.

        It ends the session before, as a new start of this party would: whatever must outlive a session is on disk.
        """
        agreed = {
            "plan": invite.agreement == self.agreement.digest,
            "profile": invite.profile == self.agreement.profile.digest,
            "list of members": invite.members == self.members,
            "session": len(identity) == 32,
        }
        for what, same in agreed.items():
            if not same:
                raise WrongAgreement(what)
        if self.session is not None:  # it ends, also if the party cannot go on from where the invitation says
            self.session.open_exchange = self.session.awaited = None
        self.store.resume(invite.resume_from)
        self.session = JoinedSession.begin(self, identity)
        self.questions.adopt(())  # the words come again after every invitation, in a resumed run perhaps the candidates
        self.documents = PartyDocuments(self.corpus)
        return ()


def keep_model(own: PartyState, finish: wire.Finish) -> tuple[Message, ...]:
    """Writes the finished model beside the party's store. Told again, it writes it again.

    Returns the words of a hidden list where the plan says that the coordinator is told them at the end.
    """
    questions, model = own.questions, own.agreement.model
    if not questions.vocabulary or questions.candidates:
        raise BadState("no vocabulary has been agreed on")
    if own.learner is None:
        state = questions.whole_state(finish.state)
    else:  # what this party learned, unless it missed a sum that the others learned from
        state = own.learner.state
        if finish.state:
            raise BadState("the parties learn by themselves, so no model may come from the coordinator")
        if own.learner.rounds != finish.rounds:
            raise OutOfTurn(finish.rounds, own.learner.rounds)
    told: tuple[Message, ...] = ()
    if finish.rounds:  # without a round there is nothing that a model could know
        hides = own.agreement.plan.vocabulary.source == BLIND
        words = shown_words(own, questions.vocabulary) if hides else questions.vocabulary
        written = "\n".join(words).encode()
        write_bytes(own.store.folder / WORDS, written)
        origin = product_of(own.agreement, own.run, own.members, simulated=own.simulated)
        release(own.store.folder, model, state, words, origin)
        told = (written,) if own.agreement.plan.vocabulary.told_at_the_end else ()
    own.finished = finish.rounds
    return told
