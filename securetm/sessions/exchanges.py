"""The two halves of every exchange and of every session.

A party answers the coordinator's messages, and the coordinator collects in waves. Only the carrier ends a wave (`expire`); no
message does. Only then does the coordinator go on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from securetm.contracts import Answer, Cohort, Exchange, Message, Parcel
from securetm.errors import Duplicate, Malformed, Refused, TooFewParties, UnknownRound
from securetm.sessions.framing import Label, Reader
from securetm.sessions.identities import COORDINATOR, PinnedRoster


class UnexpectedMessage(Refused):
    """a message from {sender} comes where none of its kind is expected"""

    sender: str


Take = Callable[[int, str, Message], Any]  # checks a message from a place and a name, and returns what of it is kept
Then = Callable[[Mapping[int, Any]], Sequence[Parcel]]  # returns the messages after a wave, from what came in it by place


class PartyExchange:
    """A party's half: it sends first, answers each message of the coordinator by its kind, and waits for nobody."""

    answers: Mapping[int, Callable[[bytes], Message]] = {}  # by kind, those that are expected now

    def __init__(self, first: Message | None = None) -> None:
        self._first = first

    def begin(self) -> Sequence[Parcel]:
        """Returns the first message once, if the protocol begins with one, and keeps it no longer: it may be a whole vector."""
        first, self._first = self._first, None
        return ((COORDINATOR, first),) if first is not None else ()

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        """Returns the answer to a message of the coordinator, or refuses a message that is not expected."""
        kind = Reader(message, sender).kind
        if sender != COORDINATOR or kind not in self.answers:
            raise UnexpectedMessage(sender)
        reply = self.answers[kind](bytes(message))  # what the coordinator sends is short
        return ((COORDINATOR, reply),) if reply else ()

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        """Does nothing: a party waits for nobody."""
        return ()


class CoordinatorExchange:
    """The coordinator's half: one message from each party that it asked, until the carrier ends the wave."""

    def __init__(self, register: PinnedRoster) -> None:
        self._register, self.got = register, dict[int, Any]()
        self._asked: frozenset[int] = frozenset()
        self._take: Take
        self._then: Then | None = None
        self._need = 0
        self._answer: Answer | None = None

    def opened(self) -> Answer | None:
        """Returns what this exchange opened, if it is a round and has ended."""
        return self._answer

    def ask(self, places: Collection[int], take: Take, then: Then | None = None, need: int = 0) -> None:
        """Begins a wave. `take` checks each message; `then` is called if at least `need` messages came."""
        self.got, self._asked, self._take, self._then, self._need = {}, frozenset(places), take, then, need

    def begin(self) -> Sequence[Parcel]:
        return ()

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        """Keeps the message. A message that is refused changes nothing, so its sender counts as missing."""
        place = self._register.place(sender)
        if place in self.got:
            raise Duplicate(sender)
        if place not in self._asked:
            raise UnexpectedMessage(sender)
        self.got[place] = self._take(place, sender, message)
        return ()

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        """Ends the wave: a party that sent nothing by now has dropped out of it. Refuses to go on with too few messages."""
        then, self._then, self._asked = self._then, None, frozenset()
        if len(self.got) < self._need:
            raise TooFewParties(len(self.got), len(self._register), self._need)
        return then(dict(sorted(self.got.items()))) if then else ()

    def to(self, messages: Mapping[int, bytes]) -> Sequence[Parcel]:
        """Returns each message with the name of the party at its place."""
        return [(self._register.name(place), message) for place, message in messages.items()]

    def signed(self, place: int, sender: str, message: Message, label: Label, kind: int, most: int) -> Reader:
        """Checks the signature of a message of at most so many bytes, and reads it up to its sender's place."""
        if len(message) > most:
            raise Malformed(sender, "it is too long")
        reader = Reader(self._register.opened(place, sender, bytes(message), label), sender, kind)
        reader.speaks_for(place)
        return reader


WITHOUT_END = sys.maxsize  # rounds that can be run where nothing is used up


class PartySession:
    """A party's session. Unless an aggregation says otherwise, nothing is prepared and the coordinator opens the sums."""

    @property
    def prepared(self) -> int:
        return WITHOUT_END

    def prepare(self, rounds: int) -> Exchange:
        return PartyExchange()

    def missed_rounds(self) -> None:
        """Called before a round if the party was not asked in the ones before it. Nothing depends on that."""

    def answer(self, round_id: bytes) -> Answer:
        """Refuses: a party opens nothing."""
        raise UnknownRound(round_id.hex()[:16])


class CoordinatorSession:
    """The coordinator's session. It keeps the round that was begun last, and what was opened in it."""

    def __init__(self, register: PinnedRoster) -> None:
        self.register = register
        self._last: tuple[bytes, CoordinatorExchange] | None = None

    @property
    def prepared(self) -> int:
        return WITHOUT_END

    def prepare(self, rounds: int) -> Exchange:
        return CoordinatorExchange(self.register)

    def missed_rounds(self) -> None:
        """Does nothing: the coordinator is in every round."""

    def begun(self, cohort: Cohort, exchange: CoordinatorExchange) -> Exchange:
        """Keeps this round in place of the one before."""
        self._last = cohort.round_id, exchange
        return exchange

    def answer(self, round_id: bytes) -> Answer:
        """Returns what was opened in the last round, or refuses."""
        answer = self._last[1].opened() if self._last is not None and self._last[0] == round_id else None
        if answer is None:
            raise UnknownRound(round_id.hex()[:16])
        return answer
