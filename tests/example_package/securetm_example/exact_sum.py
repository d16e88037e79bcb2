"""A sum that does not depend on the order of the parties, to the last bit. It hides nothing and claims nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from securetm.aggregation.vectors import pack_vector, unpack_vector
from securetm.contracts import Aggregation, Answer, Array, Claim, Cohort, Domain, Entropy, Needs, Parcel, Roster, Store, Terms
from securetm.errors import Duplicate, NotInCohort, TooFewParties, UnknownRound

COORDINATOR, WITHOUT_END = "coordinator", 1 << 60


@dataclass(frozen=True)
class ExactSum(Aggregation):
    """Real numbers are added exactly and rounded once."""

    channel: ClassVar[str] = "answer"

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        return frozenset()

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        return terms

    def error(self, terms: Terms, cohort: Cohort) -> float:
        return 0.0 if terms.domain is Domain.INTEGER else float(np.finfo(np.float32 if terms.bits == 32 else float).eps)

    def remaining(self, cohort: Cohort, joined: int) -> int:
        return 1

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        return (0 if terms is None else terms.size * terms.bits // 8), 0

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> Sender:
        return Sender(me)

    def coordinator(self, roster: Roster, store: Store) -> Adder:
        return Adder()


@dataclass
class OneMessage:
    """An exchange that says one thing, or nothing, and expects nothing."""

    parcels: Sequence[Parcel] = ()

    def begin(self) -> Sequence[Parcel]:
        return self.parcels

    def receive(self, sender: str, message: bytes) -> Sequence[Parcel]:
        raise NotInCohort(sender)

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        return ()


@dataclass
class Sender:
    """Run by a party: it sends its vector in the clear."""

    me: str
    prepared: int = WITHOUT_END

    def prepare(self, rounds: int) -> OneMessage:
        return OneMessage()

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> OneMessage:
        if vector is None or self.me not in cohort.members:
            raise NotInCohort(self.me)
        return OneMessage(((COORDINATOR, pack_vector(vector, terms)),))

    def answer(self, round_id: bytes) -> Answer:
        raise UnknownRound(round_id.hex()[:16])


@dataclass
class Adder:
    """Run by the coordinator, which sees every vector."""

    prepared: int = WITHOUT_END
    rounds: dict[bytes, Gathered] = field(default_factory=dict)

    def prepare(self, rounds: int) -> OneMessage:
        return OneMessage()

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None, surplus: Sequence[bytes] = ()
    ) -> Gathered:
        self.rounds = {cohort.round_id: Gathered(cohort=cohort, terms=terms)}
        return self.rounds[cohort.round_id]

    def answer(self, round_id: bytes) -> Answer:
        if round_id not in self.rounds:
            raise UnknownRound(round_id.hex()[:16])
        return self.rounds[round_id].total()


@dataclass(kw_only=True)
class Gathered(OneMessage):
    """The vectors of one round."""

    cohort: Cohort
    terms: Terms
    vectors: dict[str, Mapping[str, Array]] = field(default_factory=dict)

    def receive(self, sender: str, message: bytes) -> Sequence[Parcel]:
        if sender not in self.cohort.members:
            raise NotInCohort(sender)
        if sender in self.vectors:
            raise Duplicate(sender)
        self.vectors[sender] = unpack_vector(message, self.terms, sender)
        return ()

    def total(self) -> Answer:
        here = tuple(name for name in self.cohort.members if name in self.vectors)
        if len(here) < self.cohort.threshold:
            raise TooFewParties(len(here), len(self.cohort.members), self.cohort.threshold)
        if self.terms.needs is Needs.EACH:
            return Answer(None, {name: self.vectors[name] for name in here}, here)
        names = [block.name for block in self.terms.layout]
        return Answer({name: added([self.vectors[m][name] for m in here]) for name in names}, {}, here)


def added(parts: Sequence[Array]) -> Array:
    """The exact sum, rounded once; whole numbers are exact anyway."""
    stacked = np.stack(parts)
    if stacked.dtype.kind in "iu":
        return np.asarray(stacked.sum(axis=0))
    flat = stacked.reshape(len(parts), -1)
    found = np.array([math.fsum(column) if np.isfinite(column).all() else column.sum() for column in flat.T])
    return found.astype(stacked.dtype).reshape(stacked.shape[1:])
