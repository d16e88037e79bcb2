"""All roles of an encrypted sum in one place, with pinned identities and stores that can be kept over a restart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Aggregation, Answer, Array, Cohort, Entropy, Exchange, Roster, Terms
from securetm.contracts import Session as SumSession
from securetm.entropy import OperatingSystem, Seeded

COORDINATOR = "coordinator"


class Store(dict[str, bytes]):
    """A role's memory for one test."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value


def identity(name: str) -> bytes:
    return hashlib.sha256(b"identity of " + name.encode()).digest()


def public(name: str) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(identity(name)).public_key().public_bytes_raw()


def roster(members: Sequence[str], session: bytes = b"s" * 32) -> Roster:
    return Roster(session, b"p" * 32, tuple(members), {m: public(m) for m in members})


def names(n: int) -> tuple[str, ...]:
    return tuple(f"party{i:02}" for i in range(n))


@dataclass
class Session:
    """Sessions and stores of everybody; `seen` is what the coordinator received, `told` what it sent."""

    aggregation: Aggregation
    members: tuple[str, ...]
    seed: str = ""
    roster: Roster = None  # type: ignore[assignment]
    seats: dict[str, SumSession] = field(default_factory=dict)
    stores: dict[str, Store] = field(default_factory=dict)
    seen: list[tuple[str, bytes]] = field(default_factory=list)
    told: list[tuple[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.roster = self.roster or roster(self.members)
        self.stores = {m: Store(identity=identity(m)) for m in self.members}
        self.stores[COORDINATOR] = Store()
        for name in (COORDINATOR, *self.members):
            self.restart(name)

    def entropy(self, name: str) -> Entropy:
        return Seeded(hashlib.sha256((self.seed + name).encode()).digest(), unsafe=True) if self.seed else OperatingSystem()

    def restart(self, name: str) -> None:
        """A session that knows no more than its store."""
        store = self.stores[name]
        if name == COORDINATOR:
            self.seats[name] = self.aggregation.coordinator(self.roster, store)
        else:
            self.seats[name] = self.aggregation.party(name, self.roster, self.entropy(name), store)

    def prepare(self, present: Iterable[str] | None = None) -> None:
        present = tuple(self.members if present is None else present)
        exchanges = {name: self.seats[name].prepare(3) for name in (COORDINATOR, *present)}
        self.run(exchanges, [m for m in self.members if m not in present])

    def round(self, during: Cohort, terms: Terms, vectors: Mapping[str, Array]) -> dict[str, Exchange]:
        parties = {m: self.seats[m].round(during, terms, blocks_of(vectors[m], terms)) for m in vectors}
        return {COORDINATOR: self.seats[COORDINATOR].round(during, terms, None), **parties}

    def run(self, exchanges: Mapping[str, Exchange], missing: Sequence[str] = ()) -> None:
        """Wave after wave until the coordinator has nothing more to say."""
        wave = [(name, message) for name, one in exchanges.items() for _, message in one.begin()]
        while wave:
            self.seen += wave
            for name, message in wave:
                exchanges[COORDINATOR].receive(name, message)
            further = exchanges[COORDINATOR].expire(missing)
            self.told += further
            reached = [(to, message) for to, message in further if to in exchanges]
            wave = [(to, reply) for to, message in reached for _, reply in exchanges[to].receive(COORDINATOR, message)]

    def play(self, during: Cohort, terms: Terms, vectors: Mapping[str, Array]) -> Answer:
        self.run(self.round(during, terms, vectors), [m for m in during.members if m not in vectors])
        answers = [self.seats[m].answer(during.round_id) for m in vectors]
        for other in answers[1:]:
            for name, block in answers[0].total.items():
                assert (other.total[name] == block).all()
        return answers[0]


def cohort(members: Sequence[str], number: int = 0, threshold: int = 2) -> Cohort:
    return Cohort(hashlib.sha256(b"round %d" % number).digest(), number, tuple(members), threshold=threshold)
