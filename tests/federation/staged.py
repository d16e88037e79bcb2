"""A party on its own, and the coordinator that is played against it by whoever tests the party. It holds no tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from securetm.contracts import Array
from securetm.federation.party.party import Party
from securetm.federation.wire import wire

from .conftest import SHARED, SUBJECTS
from .played import Played, refusals

WORDS = tuple(sorted({*SHARED, *SUBJECTS["north"], *SUBJECTS["south"]}))
TOP = {"top": np.arange(6).reshape(2, 3)}


@dataclass
class Stage:
    """A party and the coordinator that is played against it."""

    party: Party
    played: Played

    def says(self, body: wire.Body, session: bytes | None = None) -> wire.Outcome:
        return self.played.send(self.party, body, session)

    def refuses(self, body: wire.Body, name: str, reason: str, session: bytes | None = None) -> None:
        """Only the name on the wire, the reason in the party's own store, and an honest question still gets its answer."""
        reply = self.party.handle(wire.pack_request(self.played.session if session is None else session, body))
        expected = wire.pack_reply(self.played.session if session is None else session, wire.Refusal(name))
        assert reply == expected, (wire.unpack_reply(reply, "the party"), refusals(self.party)[-1])
        found = refusals(self.party)[-1]
        assert found[0] == name
        assert reason in found[1]

    def answers(self, ask: wire.Ask) -> bytes:
        outcome = self.says(ask)
        assert isinstance(outcome, wire.Accepted), (outcome, refusals(self.party)[-1])
        (parcel,) = outcome.parcels
        return parcel

    def about(self, question: str) -> dict[str, Array]:
        """What comes with a question of that name."""
        return TOP if question == "coherence" else dict(self.played.fresh()) if question in ("train", "held_out") else {}

    def still_works(self) -> None:
        """An honest question, of a number that was never asked before, gets its answer."""
        held = {number for (number,) in self.party.store.rows("SELECT number FROM asked WHERE question = 'train'")}
        number = max(set(range(self.played.plan.training.rounds)) - held)
        assert self.answers(self.played.ask("train", self.played.fresh(), number=number, serial=self.played.serial + 1000))
