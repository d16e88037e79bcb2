"""The smallest honest secure sum: pairwise masks that cancel when everybody answers. It recovers nobody who leaves.

Whole numbers modulo 2^64 only. The coordinator relays keys that nobody signed, so it has to keep to the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import shake_256

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import (
    Aggregation,
    Answer,
    Array,
    Claim,
    Cohort,
    Domain,
    Entropy,
    Exchange,
    Message,
    Needs,
    Parcel,
    Roster,
    Store,
    Terms,
)
from securetm.errors import BadSetting, BadVector, Duplicate, Malformed, NotInCohort, TooFewParties, UnknownRound

COORDINATOR = "coordinator"
KEY = 32


@dataclass(frozen=True)
class ToyMasks(Aggregation):
    """Every two parties agree on a mask; one adds it, the other subtracts it."""

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        return frozenset({Claim("sees only sums", COORDINATOR, cohort.colluding)})

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        if terms.needs is not Needs.SUM or terms.domain is not Domain.INTEGER:
            raise BadSetting("ToyMasks", "terms", "this query", "must be an integer sum")
        if cohort.threshold != len(cohort.members) or cohort.colluding > len(cohort.members) - 2:
            raise BadSetting("ToyMasks", "cohort", f"{len(cohort.members)} parties", "must all answer, two of them honest")
        return replace(terms, bits=64)

    def remaining(self, cohort: Cohort, joined: int) -> int:
        return len(cohort.members)

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        return (64 + 8 * terms.size if terms is not None else 64 + 64 * rounds), 64 + 64 * parties * max(rounds, 1)

    def error(self, terms: Terms, cohort: Cohort) -> float:
        return 0.0

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> MaskingSession:
        return MaskingSession(me, roster.members, entropy, store)

    def coordinator(self, roster: Roster, store: Store) -> AddingSession:
        return AddingSession(roster.members)


@dataclass
class MaskingSession:
    """Run by a party. It then knows the masks it shares, and nobody else's answer."""

    me: str
    members: tuple[str, ...]
    entropy: Entropy
    store: Store

    @property
    def prepared(self) -> int:
        """Toy keys last for any number of rounds."""
        return 1_000_000

    def prepare(self, rounds: int) -> Exchange:
        self.store.put("private", self.entropy.bytes(KEY))
        return KeyExchange(self)

    def missed_rounds(self) -> None:
        """Toy masks depend on nothing that happened in other rounds."""

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        if vector is None or self.me not in cohort.members:
            raise NotInCohort(self.me)
        flat = np.concatenate([vector[block.name].ravel() for block in terms.layout]).astype(np.int64).view(np.uint64)
        return OneMessage(self.masked(flat, cohort).astype("<u8").tobytes())

    def masked(self, flat: Array, cohort: Cohort) -> Array:
        for peer in cohort.members:
            if peer != self.me:  # both sides must agree on the sign: the smaller name adds
                mask = self.mask(peer, cohort, len(flat))
                flat = flat + mask if self.me < peer else flat - mask
        return flat

    def mask(self, peer: str, cohort: Cohort, n: int) -> Array:
        return np.frombuffer(shake_256(self.secret(peer) + cohort.round_id).digest(8 * n), dtype="<u8")

    def private(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.store.get("private") or b"")

    def secret(self, peer: str) -> bytes:
        return self.private().exchange(X25519PublicKey.from_public_bytes(self.store.get(f"key of {peer}") or b""))

    def answer(self, round_id: bytes) -> Answer:
        raise UnknownRound(round_id.hex()[:16])


@dataclass
class OneMessage:
    """One message to the coordinator, then nothing."""

    message: bytes

    def begin(self) -> Sequence[Parcel]:
        return ((COORDINATOR, self.message),)

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        raise Malformed(sender, "nothing is expected")

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        return ()


@dataclass
class KeyExchange:
    """A party sends its public key and receives everybody's."""

    session: MaskingSession

    def begin(self) -> Sequence[Parcel]:
        return ((COORDINATOR, self.session.private().public_key().public_bytes_raw()),)

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        if sender != COORDINATOR or len(message) != KEY * len(self.session.members):
            raise Malformed(sender, "is no list of keys")
        for place, name in enumerate(self.session.members):
            self.session.store.put(f"key of {name}", bytes(message[KEY * place : KEY * (place + 1)]))
        return ()

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        raise TooFewParties(len(self.session.members) - len(missing), len(self.session.members), len(self.session.members))


@dataclass
class AddingSession:
    """Run by the coordinator. It then knows the public keys, the masked answers and their sum."""

    members: tuple[str, ...]
    rounds: dict[bytes, Gathering] = field(default_factory=dict)

    @property
    def prepared(self) -> int:
        """Toy keys last for any number of rounds."""
        return 1_000_000

    def prepare(self, rounds: int) -> Exchange:
        return Gathering(self.members, KEY, relay=True)

    def missed_rounds(self) -> None:
        """The coordinator is in every round."""

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        self.rounds[cohort.round_id] = Gathering(cohort.members, 8 * terms.size, terms)
        return self.rounds[cohort.round_id]

    def answer(self, round_id: bytes) -> Answer:
        if round_id not in self.rounds:
            raise UnknownRound(round_id.hex()[:16])
        return self.rounds[round_id].total()


@dataclass
class Gathering:
    """The coordinator takes one message of fixed length from each member; it may relay them all to all."""

    members: tuple[str, ...]
    size: int
    terms: Terms = Terms(())  # noqa: RUF009 - frozen
    relay: bool = False
    got: dict[str, bytes] = field(default_factory=dict)

    def begin(self) -> Sequence[Parcel]:
        return ()

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        if sender not in self.members:
            raise NotInCohort(sender)
        if sender in self.got:
            raise Duplicate(sender)
        if len(message) != self.size:
            raise BadVector(sender, f"has {len(message)} bytes and not {self.size}")
        self.got[sender] = bytes(message)
        return ()

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        if len(self.got) < len(self.members):  # a mask would be left over
            raise TooFewParties(len(self.got), len(self.members), len(self.members))
        relayed, self.relay = self.relay, False
        return [(name, b"".join(self.got[m] for m in self.members)) for name in self.members] if relayed else ()

    def total(self) -> Answer:
        if len(self.got) < len(self.members):  # a mask would be left over
            raise TooFewParties(len(self.got), len(self.members), len(self.members))
        vectors = [np.frombuffer(self.got[name], dtype="<u8") for name in self.members]
        added: Array = np.asarray(np.sum(vectors, axis=0, dtype=np.uint64)).view(np.int64)
        return Answer(blocks_of(added, self.terms), {}, self.members)
