"""Sessions of one aggregation, and all of its roles in one process, with a clock and a counter of bytes for each wave."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lab.measuring import RoleMemory, timed
from securetm.contracts import Aggregation, Array, Cohort, Exchange, Roster, Session, Terms
from securetm.entropy import OperatingSystem
from securetm.sessions.identities import COORDINATOR


@dataclass
class WaveCost:
    party: list[float] = field(default_factory=list)  # seconds, one party each
    coordinator: float = 0.0
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class PlannedSession:
    """The public facts of a session, and its roles, whose keys serve one measurement alone."""

    aggregation: Aggregation
    members: tuple[str, ...]
    promised: Terms

    @property
    def terms(self) -> Terms:
        """What is promised about a vector that travels."""
        return self.aggregation.admit(self.promised, self.cohort(0))

    def cohort(self, number: int) -> Cohort:
        return Cohort(number.to_bytes(32, "big"), number, self.members)

    def party(self, name: str) -> Session:
        return self.aggregation.party(name, self._roster, OperatingSystem(), RoleMemory(identity=_secret(name)))

    def coordinator(self) -> Session:
        return self.aggregation.coordinator(self._roster, RoleMemory())

    @property
    def _roster(self) -> Roster:
        keys = {name: Ed25519PrivateKey.from_private_bytes(_secret(name)).public_key() for name in self.members}
        return Roster(bytes(32), bytes(32), self.members, {name: key.public_bytes_raw() for name, key in keys.items()})


def _secret(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


class MeasuredSession:
    """A session that was set up for so many rounds; `setup` says what that cost."""

    def __init__(self, aggregation: Aggregation, terms: Terms, parties: int, rounds: int) -> None:
        self.members, self.aggregation = tuple(f"party {place}" for place in range(parties)), aggregation
        session = PlannedSession(aggregation, self.members, terms)
        self.roles, self.coordinator = {name: session.party(name) for name in self.members}, session.coordinator()
        self.terms, self.cohort = session.terms, session.cohort
        self.setup = run(self.coordinator.prepare(rounds), {n: role.prepare(rounds) for n, role in self.roles.items()})

    def exchanges(self, number: int, vectors: Mapping[str, Array]) -> dict[str, Exchange]:
        """A round, as each party that has a vector begins it."""
        block = self.terms.layout[0].name
        return {n: self.roles[n].round(self.cohort(number), self.terms, {block: vector}) for n, vector in vectors.items()}

    def round(self, number: int, vectors: Mapping[str, Array]) -> list[WaveCost]:
        """One round; parties without a vector never answer in it. The sum must be right."""
        cohort = self.cohort(number)
        waves = run(self.coordinator.round(cohort, self.terms, None), self.exchanges(number, vectors))
        opener = self.coordinator if self.aggregation.opened_by == "coordinator" else self.roles[self.members[0]]
        total = opener.answer(cohort.round_id).total
        assert total is not None
        exact = np.sum([vector.astype(np.float64) for vector in vectors.values()], axis=0)
        assert np.abs(total[self.terms.layout[0].name] - exact).max() <= self.aggregation.error(self.terms, cohort)
        return waves


def run(coordinator: Exchange, parties: Mapping[str, Exchange]) -> list[WaveCost]:
    """Wave after wave until nothing is left to say. Only one message at a time is in memory."""
    waves, further = [], {name: (exchange.begin, 0) for name, exchange in parties.items()}
    while further:
        wave = WaveCost()
        for name, (act, size) in further.items():
            took, out = timed(act)
            wave.party.append(took)
            wave.down.append(size)
            wave.up.append(sum(len(message) for _, message in out))
            begun = time.perf_counter()
            for _, message in out:
                coordinator.receive(name, message)
            del out
            wave.coordinator += time.perf_counter() - begun
        took, parcels = timed(lambda: list(coordinator.expire(())))
        wave.coordinator += took
        waves.append(wave)
        further = {to: (partial(parties[to].receive, COORDINATOR, message), len(message)) for to, message in parcels}
    return waves
