"""The party's end: in each pass it takes in the coordinator's newest letter, answers it, and puts the answer out.

All that it must not forget is in its store before the answer is put out: the number that it answered, the answer, and its
session. So a process may end after any pass, and the next one goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec

from securetm.credentials.keys import Keys
from securetm.credentials.roster import COORDINATOR, FederationRoster
from securetm.data_classes import dataclass, field
from securetm.errors import Malformed
from securetm.federation.courier.letters import DIGEST, Head, Subject, Writer, bundle_size, bundled, unbundled
from securetm.federation.courier.mailbox import Mailbox, Sent, newest
from securetm.federation.courier.paused_party import go_on, paused
from securetm.federation.courier.places import Place, PlaceAway
from securetm.federation.network.events import NetworkEvents
from securetm.federation.party.joining import Joining
from securetm.federation.party.reply_times import PacedParty
from securetm.plans.agreement import Agreement

_KEPT_AS = "by courier"  # in the party's store
_REMEMBERED = 4_096  # of its own letters, by their digests
NEVER = bytes(DIGEST)


def writer_of(name: str, keys: Keys, roster: FederationRoster, agreement: Agreement) -> Writer:
    return Writer(name, keys, roster, Subject(roster.digest, agreement.digest, agreement.profile.digest))


@dataclass
class Kept:
    """What a party remembers of its letters."""

    number: int = 0  # of the letter that it answered last
    file: bytes = b""  # the answer itself
    names: list[str] = field(default_factory=list)  # of the files of the answer
    own: list[bytes] = field(default_factory=list)  # the digests of its letters, the oldest first
    session: bytes = b""  # sealed, see `paused_party.py`
    passes: int = 0  # letters answered in this run


@dataclass
class CourierCarrier:
    """Brings letters to the party and its answers back (federation.party.joining.Carrier)."""

    box: Mailbox
    party: PacedParty
    every: float = 2.0  # seconds between two passes of a process that stays
    events: NetworkEvents = field(default_factory=NetworkEvents)
    kept: Kept = field(default_factory=Kept)
    _answer: Sent | None = None
    _away: bool = False  # whether the place could not be reached when it was tried last

    def __post_init__(self) -> None:
        stored = self.party.party.store.get(_KEPT_AS)
        if stored is None:
            return
        self.kept = msgspec.msgpack.decode(stored, type=Kept)
        if self.kept.session:
            go_on(self.party, self.kept.session)
        if self.kept.file:
            self._answer = Sent(self.kept.file, self.kept.names)

    @property
    def finished(self) -> bool:
        """Whether the party has what the run ended with."""
        return self.party.party.finished is not None

    def run(self, handle: Callable[[bytes], Any], stop: threading.Event) -> bool:
        """Makes passes until `stop` is set or the run has ended. Returns whether it has."""
        while not stop.is_set():
            if not self._tried(handle, stop) and not self.finished:
                stop.wait(self.every)
            if self.finished:
                return True
        return False

    def _tried(self, handle: Callable[[bytes], Any], stop: threading.Event) -> bool:
        """A pass. A place that is away is tried again, and told once."""
        try:
            took = self.one_pass(handle, stop)
        except PlaceAway as away:
            if not self._away:
                self.events.lost(COORDINATOR, str(away))
            took, self._away = False, True
        else:
            if self._away:
                self.events.connected(COORDINATOR)
            self._away = False
        return took

    def one_pass(self, handle: Callable[[bytes], Any], stop: threading.Event) -> bool:
        """Takes in, answers, puts out. Returns whether there was a new letter."""
        for head, names in newest(self.box.heads(COORDINATOR), self.kept.number).items():
            contents = (self.box.content(name, head, bundle_size(self.party.most_bytes)) for name in names)
            content = next((one for one in contents if one is not None), None)
            if content is not None and self._treat(head, content, handle, stop):
                return True
        if self._answer is not None and self.box.look_after(self._answer):
            self._keep()
        return False

    def _treat(self, head: Head, content: bytes, handle: Callable[[bytes], Any], stop: threading.Event) -> bool:
        """Answers a letter. Its messages are treated one after the other, as if each had come alone."""
        if head.answers not in (NEVER, *self.kept.own):  # it answers a letter that this party does not remember to have sent
            self.party.party.session = None
            self.box.troubles[COORDINATOR] = "it knows letters of this party that this home has forgotten"
        try:
            messages = unbundled(content, COORDINATOR)
        except Malformed as wrong:
            self.box.troubles[COORDINATOR] = str(wrong)
            return False
        self.events.connected(COORDINATOR)
        reply = bundled([bytes(handle(message)) for message in messages])
        if stop.is_set():  # the answer may be there before its time
            return False
        before, self._answer = self._answer, self.box.write(COORDINATOR, head.number, head.identity, reply)
        own = [*self.kept.own, self._answer.identity][-_REMEMBERED:]
        self.kept = Kept(head.number, self._answer.file, [], own, paused(self.party), self.kept.passes + 1)
        self._keep()
        if before is not None:
            self.box.withdraw(before)
        self.box.look_after(self._answer)
        self._keep()
        self.events.carried(COORDINATOR, len(content), len(reply))
        return True

    def _keep(self) -> None:
        self.kept.names = self._answer.names if self._answer is not None else []
        self.party.party.store.put(_KEPT_AS, msgspec.msgpack.encode(self.kept))


def carrier_of(
    joining: Joining, place: Place, party: PacedParty, events: NetworkEvents, *, once: bool = False, every: float = 2.0
) -> CourierCarrier:
    writer = writer_of(joining.file.name, joining.keys, joining.roster, joining.agreement)
    return CourierCarrier(Mailbox(writer, place, once), party, every, events)
