"""A masked federation played in one place: real sessions, a carrier that ends each wave, parties that leave where a test says.

No test of its own, and no network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.aggregation.masked.messages import Kind
from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Answer, Array, Block, Cohort, Domain, Entropy, Exchange, Parcel, Roster, Terms
from securetm.entropy import OperatingSystem, Seeded
from securetm.sessions.framing import Label
from securetm.sessions.identities import SIGNATURE, Identity
from securetm.testing.few_documents import EmptyStore

COORDINATOR = "coordinator"
STAGES = (Kind.COMMIT, Kind.REVEAL, Kind.SHARES, Kind.STORED, Kind.MASKED, Kind.CONSENT, Kind.UNMASKED)
SIGNED_AS = {
    Kind.COMMIT: Label.COMMITMENT,
    Kind.REVEAL: Label.REVEAL,
    Kind.SHARES: Label.SHARES,
    Kind.STORED: Label.RECEIPT,
    Kind.MASKED: Label.VECTOR,
    Kind.HELLO: Label.QUESTION,
    Kind.CONSENT: Label.CONSENT,
    Kind.UNMASKED: Label.UNMASKED,
}
TERMS = Terms((Block("a", (2, 2)), Block("b", (3,))), domain=Domain.INTEGER, bits=64, reach=1000)


def identity_key(name: str) -> bytes:
    return hashlib.sha256(b"identity of " + name.encode()).digest()


def public_identity(name: str) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(identity_key(name)).public_key().public_bytes_raw()


def signed_again(identity: Identity, message: bytes) -> bytes:
    """A message of a party, signed as one of its kind is."""
    return identity.sign(SIGNED_AS.get(message[1], Label.VECTOR), message[:-SIGNATURE])


def names(n: int) -> tuple[str, ...]:
    return tuple(f"party {place:02}" for place in range(n))


def roster_of(members: Sequence[str], session: bytes = b"s" * 32) -> Roster:
    return Roster(session, b"p" * 32, tuple(members), {name: public_identity(name) for name in members})


def own_store(name: str) -> EmptyStore:
    return EmptyStore({"identity": identity_key(name)})


def vectors_of(members: Sequence[str], terms: Terms = TERMS, seed: int = 0) -> dict[str, Array]:
    rng, reach = np.random.default_rng(seed), int(terms.reach)
    return {name: rng.integers(-reach, reach + 1, terms.size) for name in members}


def plain_sum(vectors: Mapping[str, Array], survivors: Sequence[str]) -> Array:
    return np.sum([vectors[name] for name in survivors], axis=0)


def flat(answer: Answer) -> Array:
    assert answer.total is not None
    return np.concatenate([part.ravel() for part in answer.total.values()])


def unchanged(_: str, message: bytes) -> bytes:
    return message


@dataclass
class Played:
    """All roles of a session. `leaves` says who is gone from which message on; `change` alters what reaches a party,
    `change_up` what reaches the coordinator."""

    aggregation: MaskedSum
    members: tuple[str, ...]
    seed: str = ""
    entropy: Callable[[str], Entropy] | None = None
    leaves: dict[Kind, set[str]] = field(default_factory=dict)
    change: Callable[[str, bytes], bytes] = unchanged
    change_up: Callable[[str, bytes], bytes] = unchanged
    seen: list[tuple[str, bytes]] = field(default_factory=list)
    sent: list[tuple[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.roster = roster_of(self.members)
        self.stores = {name: own_store(name) for name in (*self.members, COORDINATOR)}
        self.parties = {name: self.session(name) for name in self.members}
        self.middle = self.aggregation.coordinator(self.roster, self.stores[COORDINATOR])

    def draw(self, name: str) -> Entropy:
        if self.entropy is not None:
            return self.entropy(name)
        return Seeded(hashlib.sha256((self.seed + name).encode()).digest(), unsafe=True) if self.seed else OperatingSystem()

    def session(self, name: str):
        return self.aggregation.party(name, self.roster, self.draw(name), self.stores[name])

    def restart(self, name: str) -> None:
        """The process of a role ends; only its store is left."""
        if name == COORDINATOR:
            self.middle = self.aggregation.coordinator(self.roster, self.stores[name])
        else:
            self.parties[name] = self.session(name)

    def prepare(self, rounds: int = 3) -> Played:
        self.run(self.middle.prepare(rounds), {name: session.prepare(rounds) for name, session in self.parties.items()})
        return self

    def cohort(self, number: int = 0, threshold: int = 0, members: Sequence[str] = ()) -> Cohort:
        return Cohort(bytes([number + 1]) * 32, number, tuple(members) or self.members, threshold or 1)

    def begin(self, cohort: Cohort, vectors: Mapping[str, Array], terms: Terms) -> tuple[Exchange, dict[str, Exchange]]:
        asked = {m: session for m, session in self.parties.items() if session.prepared or not self.gone(m, Kind.MASKED)}
        parties = {m: session.round(cohort, terms, blocks_of(vectors[m], terms)) for m, session in asked.items()}
        return self.middle.round(cohort, terms, None), parties

    def play(self, cohort: Cohort, vectors: Mapping[str, Array], terms: Terms = TERMS) -> Answer:
        terms = self.aggregation.admit(terms, cohort)
        self.run(*self.begin(cohort, vectors, terms))
        return self.middle.answer(cohort.round_id)

    def gone(self, name: str, kind: int) -> bool:
        """Whoever leaves at a message stays away for the rest of the exchange and after."""
        rank = STAGES.index(Kind(kind)) if kind in STAGES else STAGES.index(Kind.MASKED)
        return any(name in who for stage, who in self.leaves.items() if STAGES.index(stage) <= rank)

    def run(self, middle: Exchange, parties: Mapping[str, Exchange]) -> None:
        """Wave after wave until the coordinator has nothing more to say."""
        waiting = {name: list(exchange.begin()) for name, exchange in parties.items()}
        while waiting:
            came = [
                (name, self.change_up(name, m)) for name, out in waiting.items() for _, m in out if not self.gone(name, m[1])
            ]
            for name, message in came:
                self.seen.append((name, message))
                middle.receive(name, message)
            heard = {name for name, _ in came}
            further = middle.expire([name for name in waiting if name not in heard])
            waiting = {name: self.deliver(parties[name], name, message) for name, message in further}

    def deliver(self, party: Exchange, name: str, message: bytes) -> list[Parcel]:
        message = self.change(name, message)
        self.sent.append((name, message))
        return list(party.receive(COORDINATOR, message))
