"""The transcript of a run: every message with its channel, recorded at the one place where bytes pass.

By default it keeps who, what and how many bytes; a run that is to be audited keeps the bytes too. Where a network carries the
messages, it keeps how long after its request each reply was there. If rounds are run again after
an interruption, their first messages are dropped. Their bytes still count, because they were sent.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

from securetm.contracts import Answer, Message
from securetm.data_classes import dataclass, field
from securetm.federation.store import SqliteStore
from securetm.stages import Stages, Unwatched

_TABLES = """
CREATE TABLE IF NOT EXISTS messages (at INTEGER PRIMARY KEY AUTOINCREMENT, serial INTEGER NOT NULL, channel TEXT NOT NULL,
  sender TEXT NOT NULL, receiver TEXT NOT NULL, bytes INTEGER NOT NULL, content BLOB);
CREATE INDEX IF NOT EXISTS by_serial ON messages (serial);
CREATE TABLE IF NOT EXISTS arrivals (at INTEGER PRIMARY KEY, seconds REAL NOT NULL);
CREATE TABLE IF NOT EXISTS dropped (down INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS parts (part INTEGER PRIMARY KEY AUTOINCREMENT, seconds REAL NOT NULL);
"""
# Sums that the coordinator opens are recorded too, as messages from itself to itself.
_DROPPED = """
INSERT INTO dropped SELECT channel = ?, SUM(bytes) FROM messages WHERE serial > ? AND sender != receiver GROUP BY channel = ?
"""
_TRAFFIC = """
SELECT down, SUM(bytes) FROM
  (SELECT channel = ? AS down, bytes FROM messages WHERE sender != receiver UNION ALL SELECT down, bytes FROM dropped)
GROUP BY down
"""
REQUEST, TOTAL = "request", "total"


class Parties(Protocol):
    """All parties, as the coordinator reaches them: one message to each at most, and one reply from each at most."""

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, Message]]:
        """Sends the requests and returns the replies that came in time, one by one. A party without a reply has dropped out.

        Replies are in the order of the roster, whatever the order in which they came: no result depends on who is quick.
        A carrier need not read a reply of more than `most` bytes: it would be refused.
        """
        ...

    def present(self) -> frozenset[str]:
        """Returns the parties that can be asked now."""
        ...

    def close(self) -> None:
        """Ends the processes of the parties."""
        ...


Wave = tuple[Mapping[str, bytes], int]  # a message to each party at most, and the most bytes of a reply
Replies = Generator[tuple[str, Message], None, None]  # whoever stops reading closes it


class FewPasses(Parties, Protocol):
    """Parties that are reached in passes, each of which may carry several messages to a party one after the other."""

    def ask_in_one(self, waves: Sequence[Wave]) -> Sequence[Replies]:
        """Sends these waves in one pass, and returns the replies to each. A party treats its messages in their order."""
        ...


class Transcript(SqliteStore):
    def __init__(self, folder: Path, *, with_content: bool = False) -> None:
        # Not synced: a killed process loses nothing, and after a loss of power the bytes of the last moment are missing.
        super().__init__(folder / "messages.sqlite", _TABLES, synced=False)
        self.with_content = with_content
        self.serial = 0  # of the round under way

    def record(
        self, serial: int, channel: str, sender: str, receiver: str, message: Message, after: float | None = None
    ) -> None:
        """Records one message; of a reply that a network carried, also how many seconds after its request it came."""
        content = message if self.with_content else None
        change = "INSERT INTO messages (serial, channel, sender, receiver, bytes, content) VALUES (?, ?, ?, ?, ?, ?)"
        self.later(change, serial, channel, sender, receiver, len(message), content)
        if after is not None:
            self.later("INSERT INTO arrivals SELECT MAX(at), ? FROM messages", after)

    def forget_after(self, serial: int) -> None:
        """Deletes messages of rounds that will be run again. Their bytes still count."""
        self.later(_DROPPED, REQUEST, serial, REQUEST)
        self.later("DELETE FROM arrivals WHERE at IN (SELECT at FROM messages WHERE serial > ?)", serial)
        self.now("DELETE FROM messages WHERE serial > ?", serial)

    def traffic(self) -> tuple[int, int]:
        """Returns the bytes from all parties and to all parties, in all parts of the run."""
        sums = {bool(down): int(sent) for down, sent in self.rows(_TRAFFIC, REQUEST)}
        return sums.get(False, 0), sums.get(True, 0)

    def seconds(self) -> float:
        return float(self.rows("SELECT COALESCE(SUM(seconds), 0) FROM parts")[0][0])


class Watch:
    """Is told what a coordinator does; this one keeps nothing."""

    def round_begins(self, serial: int) -> None:
        """Called before the first message of a round."""

    def asked(self, requests: Mapping[str, bytes]) -> None:
        """Called with the messages of each wave, before they leave."""

    def answered(self, party: str, length: int) -> None:
        """Called with each reply that came in time, of so many bytes."""

    def opened(self, serial: int, answer: Answer) -> None:
        """Called with each opened answer, as the coordinator sees it: before it adds noise of its own."""

    def trained(self, done: int, total: int) -> None:
        """Called after each training round."""

    def objected(self, party: str, refusal: str) -> None:
        """Called when a party refused a message, or sent one that was refused."""

    def kept(self, rounds: int) -> None:
        """Called after a checkpoint."""


@dataclass
class RecordedParties:
    """Records every message to and from the parties, the only way between roles."""

    parties: Parties
    transcript: Transcript
    channel: str
    told: Watch = field(default_factory=Watch)
    arrivals: Mapping[str, float] = field(default_factory=dict)  # seconds after its request, by party; a network fills it in
    only_present: bool = False  # whether a wave leaves out the parties that are away when it begins
    few: FewPasses | None = None  # the same parties, where their carrier takes several messages at once

    def ask(self, requests: Mapping[str, bytes], most: int) -> Replies:
        """Carries requests and replies, and writes each to disk before it goes on."""
        requests = self._begun(requests)
        yield from self._recorded(self.parties.ask(requests, most))

    def ask_in_one(self, waves: Sequence[Wave]) -> Sequence[Replies]:
        """Carries several waves in one pass."""
        assert self.few is not None
        asked = [(self._begun(requests), most) for requests, most in waves]
        return [self._recorded(replies) for replies in self.few.ask_in_one(asked)]

    def _begun(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Records a wave before it leaves, and returns what of it leaves."""
        transcript, serial = self.transcript, self.transcript.serial
        for party, request in requests.items():
            transcript.record(serial, REQUEST, "coordinator", party, request)
        transcript.keep()
        if self.only_present:
            here = self.present()
            requests = {party: request for party, request in requests.items() if party in here}
        self.told.asked(requests)
        return requests

    def _recorded(self, replies: Iterator[tuple[str, Message]]) -> Replies:
        """Writes each reply to disk before it goes on."""
        transcript, serial = self.transcript, self.transcript.serial
        try:
            for party, message in replies:
                self.told.answered(party, len(message))
                transcript.record(serial, self.channel, party, "coordinator", message, self.arrivals.get(party))
                if transcript.with_content:  # the contents of all replies may not fit into memory
                    transcript.keep()
                yield party, message
        finally:
            transcript.keep()

    def present(self) -> frozenset[str]:
        return self.parties.present()

    def close(self) -> None:
        self.parties.close()


@dataclass
class RecordingWatch(Watch):
    transcript: Transcript
    told: Watch = field(default_factory=Watch)  # is told the same
    stages: Stages = field(default_factory=Unwatched)
    title: str = ""  # of the stage of training
    _total: int = 0

    def round_begins(self, serial: int) -> None:
        self.transcript.serial = serial

    def opened(self, serial: int, answer: Answer) -> None:
        """Records the total, where contents are recorded."""
        self.told.opened(serial, answer)
        if self.transcript.with_content and answer.total is not None:
            opened = b"".join(block.tobytes() for block in answer.total.values())
            self.transcript.record(serial, TOTAL, "coordinator", "coordinator", opened)

    def trained(self, done: int, total: int) -> None:
        """Shows progress. How many rounds there are may follow from the number of documents, so the first one tells it."""
        if total != self._total:
            self.stages.stage(self.title, total)
            self._total = total
        self.stages.step(done)
        self.told.trained(done, total)

    def objected(self, party: str, refusal: str) -> None:
        self.told.objected(party, refusal)

    def kept(self, rounds: int) -> None:
        self.told.kept(rounds)


_EVERY = 1.0  # seconds between two writes


@dataclass
class WorkTimer:
    """Passes progress on, and writes now and then how long the run has taken."""

    transcript: Transcript
    stages: Stages
    _begun: float = field(default_factory=time.perf_counter)
    _noted: float = 0.0
    _part: int = 0

    def __enter__(self) -> Self:
        self.transcript.now("INSERT INTO parts (seconds) VALUES (0)")
        self._part = int(self.transcript.rows("SELECT MAX(part) FROM parts")[0][0])
        return self

    def __exit__(self, *_: object) -> None:
        self._note()
        self.transcript.close()

    def stage(self, title: str, total: int) -> None:
        self._note()
        self.stages.stage(title, total)

    def step(self, done: int) -> None:
        if not self._noted or time.perf_counter() - self._noted > _EVERY:
            self._note()
        self.stages.step(done)

    def seconds(self) -> float:
        self._note()
        return self.transcript.seconds()

    def _note(self) -> None:
        self._noted = time.perf_counter()
        self.transcript.now("UPDATE parts SET seconds = ? WHERE part = ?", self._noted - self._begun, self._part)
