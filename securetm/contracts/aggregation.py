"""The contract of an aggregation: it changes who sees a sum, and keeps the sum within a stated error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from securetm.contracts.mechanism import Entropy, Store
from securetm.contracts.terms import Answer, Array, Claim, Cohort, Roster, Terms

Message = bytes | memoryview  # a long one may be a view that nobody can write to: whoever keeps or joins it makes bytes of it
Parcel = tuple[str, Message]  # to whom, what


class Exchange(Protocol):
    """One role in one run of a protocol, sans-I/O: bytes in, bytes out. A carrier delivers the messages and keeps the time.

    Messages go in waves. Parties send first (`begin`), and answer each message that they `receive`. The coordinator receives
    what came in time and returns nothing; `expire` ends the wave and returns the messages of the next one. The carrier ends
    every wave, even where no party is missing. A missing party has dropped out.
    """

    def begin(self) -> Sequence[Parcel]: ...
    def receive(self, sender: str, message: Message) -> Sequence[Parcel]: ...
    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]: ...


class Session(Protocol):
    """A role in a session. Its keys, its prekeys and what it revealed outlive rounds, and are kept in a store."""

    @property
    def prepared(self) -> int: ...  # rounds that can still be run before the next `prepare`; unlimited for plain sums
    def prepare(self, rounds: int) -> Exchange: ...
    def round(
        self, cohort: Cohort, terms: Terms, vector: Mapping[str, Array] | None, surplus: Sequence[bytes] = ()
    ) -> Exchange:
        """One round. A party reveals the parts of `surplus` that the sum over the survivors does not need, or none at all."""
        ...

    def missed_rounds(self) -> None: ...  # a party's: before a round, if it was not asked in the ones before it
    def answer(self, round_id: bytes) -> Answer: ...  # or a refusal, if this role does not open it


class Aggregation(Protocol):
    """Changes who sees a sum, and keeps it within a stated error. It is a frozen dataclass, whose fields are its settings."""

    opened_by: ClassVar[str] = "coordinator"  # or "parties"
    channel: ClassVar[str] = "sealed"  # what the transcript calls a party's messages: "answer" where anybody can read them
    most_parties: ClassVar[int] = 100_000
    names_survivors: ClassVar[bool] = False  # whether parties learn who survived a round, and check it
    from_profile: ClassVar[tuple[str, ...]] = ()  # settings that it takes from the profile, such as "colluding"

    def claims(self, cohort: Cohort) -> frozenset[Claim]: ...
    def admit(self, terms: Terms, cohort: Cohort) -> Terms: ...
    def error(self, terms: Terms, cohort: Cohort) -> float:
        """The largest error of one coordinate of the sum: absolute on a grid, else relative to the largest partial sum."""
        ...

    def remaining(self, cohort: Cohort, joined: int) -> int:
        """The fewest parties whose sum anybody sees, for a cohort among so many that joined; a party enforces it."""
        ...

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        """The most bytes of one message from a party and of one to it: in a round with these terms, or in a set-up."""
        ...

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> Session: ...  # its key: "identity"
    def coordinator(self, roster: Roster, store: Store) -> Session: ...
