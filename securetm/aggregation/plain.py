"""The plain sum: every party sends its vector as it is and the coordinator adds them. It protects nothing.

It is the baseline that every secure sum must equal and that every attack must break.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from securetm.aggregation.vectors import pack_vector, unpack_vector
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
    Roster,
    Store,
    Terms,
)
from securetm.data_classes import dataclass, replace
from securetm.errors import NotInCohort, TooFewParties
from securetm.sessions.exchanges import CoordinatorExchange, CoordinatorSession, PartyExchange, PartySession
from securetm.sessions.identities import PinnedRoster
from securetm.sessions.survivors import check_least


@dataclass(frozen=True)
class PlainSum(Aggregation):
    """Danger: the coordinator reads every party's own vector."""

    channel: ClassVar[str] = "answer"

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        return frozenset()

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """Any terms are taken, those that need each party's vector too."""
        return terms

    def error(self, terms: Terms, cohort: Cohort) -> float:
        """Largest rounding error of one coordinate, in units of the largest partial sum."""
        if terms.domain is Domain.INTEGER:
            return 0.0
        return len(cohort.members) * float(np.finfo(np.float32 if terms.bits == 32 else np.float64).eps)

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> PlainPartySession:
        return PlainPartySession(me, roster)

    def remaining(self, cohort: Cohort, joined: int) -> int:
        """One: each answer is seen by itself."""
        return 1

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        """One vector from a party; nothing comes back."""
        return (terms.size * terms.bits // 8 if terms is not None else 0), 0

    def coordinator(self, roster: Roster, store: Store) -> PlainCoordinatorSession:
        return PlainCoordinatorSession(PinnedRoster(roster))


class PlainPartySession(PartySession):
    """Run by a party. It sends one message a round and opens nothing."""

    def __init__(self, me: str, roster: Roster) -> None:
        self._me, self._roster = me, roster

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        """Sends this party's vector in the clear. That is a sum over this party alone, whoever else answers."""
        if vector is None or self._me not in cohort.members:
            raise NotInCohort(self._me)
        check_least(self._roster, replace(cohort, threshold=1), (self._me,))
        return PartyExchange(pack_vector(vector, terms))


class PlainCoordinatorSession(CoordinatorSession):
    """Run by the coordinator, which then knows each vector and the sum."""

    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None = None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        return self.begun(cohort, PlainCoordinatorRound(self.register, cohort, terms))


class PlainCoordinatorRound(CoordinatorExchange):
    def __init__(self, register: PinnedRoster, cohort: Cohort, terms: Terms) -> None:
        super().__init__(register)
        self._cohort, self._terms = cohort, terms
        self._vectors: dict[int, Mapping[str, Array]] = {}  # that are not added
        self._total: dict[str, Array] = {}
        self._next = sorted(register.place(member) for member in cohort.members)  # whose vector is added next
        self.ask(self._next, self._take)

    def _take(self, place: int, sender: str, message: Message) -> None:
        """Adds the vector at once if it is next in roster order: all vectors together may not fit into memory."""
        self._vectors[place] = unpack_vector(message, self._terms, sender)
        while self._terms.needs is Needs.SUM and self._next and self._next[0] in self._vectors:
            self._add(self._vectors.pop(self._next.pop(0)))

    def _add(self, vector: Mapping[str, Array]) -> None:
        for name, part in vector.items():
            self._total[name] = np.add(self._total[name], part) if name in self._total else part.copy()

    def opened(self) -> Answer:
        """The total over the parties that answered, added in roster order; each vector where the question needs it."""
        survivors = tuple(self._register.name(place) for place in sorted(self.got))
        if len(survivors) < self._cohort.threshold:
            raise TooFewParties(len(survivors), len(self._cohort.members), self._cohort.threshold)
        if self._terms.needs is Needs.EACH:
            return Answer(None, {self._register.name(place): self._vectors[place] for place in sorted(self.got)}, survivors)
        for place in sorted(self._vectors):  # those after a party that is missing
            self._add(self._vectors.pop(place))
        return Answer(self._total, {}, survivors)
