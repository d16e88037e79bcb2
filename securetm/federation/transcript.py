"""The transcript of a run: every message with its channel, recorded at the one place where bytes pass. It judges nothing.

By default it keeps who, what and how many bytes; a run that is to be audited keeps the bytes too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from securetm.federation.store import Drawer

_TABLES = """
CREATE TABLE IF NOT EXISTS messages (at INTEGER PRIMARY KEY AUTOINCREMENT, serial INTEGER NOT NULL, channel TEXT NOT NULL,
  sender TEXT NOT NULL, receiver TEXT NOT NULL, bytes INTEGER NOT NULL, content BLOB);
CREATE INDEX IF NOT EXISTS by_serial ON messages (serial);
"""
REQUEST, TOTAL = "request", "total"


class Parties(Protocol):
    """All parties as the coordinator meets them: it sends each at most one message and gets at most one reply from each."""

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The replies that came in time; a party that is missing has dropped out."""
        ...

    def close(self) -> None:
        """Ends what was started for them."""
        ...


class Transcript(Drawer):
    """The messages of a run, in the order in which they passed."""

    def __init__(self, folder: Path, *, with_content: bool = False) -> None:
        super().__init__(folder / "messages.sqlite", _TABLES)
        self.with_content = with_content

    def record(self, serial: int, channel: str, sender: str, receiver: str, message: bytes) -> None:
        """One message, as it passed."""
        content = message if self.with_content else None
        change = "INSERT INTO messages (serial, channel, sender, receiver, bytes, content) VALUES (?, ?, ?, ?, ?, ?)"
        self.later(change, serial, channel, sender, receiver, len(message), content)
        if self.with_content and len(self._waiting) > 100:
            self.keep()

    def forget_after(self, serial: int) -> None:
        """Drops messages of rounds that will be run again."""
        self.now("DELETE FROM messages WHERE serial > ?", serial)

    def traffic(self) -> tuple[int, int]:
        """Bytes from all parties, and bytes to all parties."""
        found = self.rows("SELECT channel = ?, SUM(bytes) FROM messages GROUP BY channel = ?", REQUEST, REQUEST)
        sums = {bool(down): int(total) for down, total in found}
        return sums.get(False, 0), sums.get(True, 0)


@dataclass
class Recorded:
    """Parties whose every message is recorded. Nothing passes between the roles except through here."""

    parties: Parties
    transcript: Transcript
    channel: str
    serial: int = 0
    bytes_up: int = 0
    bytes_down: int = 0

    def ask(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Passes requests on and replies back, and writes both down."""
        for party, message in requests.items():
            self.transcript.record(self.serial, REQUEST, "coordinator", party, message)
            self.bytes_down += len(message)
        replies = self.parties.ask(requests)
        for party, message in replies.items():
            self.transcript.record(self.serial, self.channel, party, "coordinator", message)
            self.bytes_up += len(message)
        return replies

    def close(self) -> None:
        """Ends the parties and keeps what waits."""
        self.parties.close()
        self.transcript.close()
