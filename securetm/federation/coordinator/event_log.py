"""The coordinator's log: one JSON document a line, with the name of an event and public facts. No vector, word or key fits in.

Each event has a fixed list of facts, and each fact is a short text or a number. Anything else is a fault of the caller.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from securetm.private_files import make_folder, private_file

Fact = str | int | float | None
EVENTS: Mapping[str, tuple[str, ...]] = {
    "started": ("run", "address", "round"),
    "connected": ("party",),
    "left": ("party", "reason"),
    "rejected": ("party", "refusal"),
    "waiting": ("missing", "seconds"),
    "session": ("session", "parties"),
    "session_ended": ("session", "reason", "missing"),
    "round": ("round", "of", "survivors", "seconds", "bytes_up", "bytes_down"),
    "kept": ("round",),
    "refused": ("party", "refusal"),
    "trained": ("rounds", "stopped"),
    "handed_out": ("party",),
    "finished": ("rounds", "seconds"),
    "stopped": ("round", "reason"),
    "failed": ("error",),
}
LONGEST_FACT = 200  # characters
_FULL = 16 << 20  # bytes of the log; then it becomes the older of two


@dataclass
class EventLog:
    """Writes events to a file for its owner alone, and to a second stream where one is given."""

    path: Path
    beside: TextIO | None = None
    _alone: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        make_folder(self.path.parent)
        private_file(self.path)

    def write(self, event: str, **facts: Fact) -> None:
        """Writes one event with all its facts."""
        line = json.dumps(
            {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **_checked(event, facts)}
        )
        with self._alone, suppress(OSError):  # a full disk stops no thread of the network; stores name it
            if self.path.stat().st_size + len(line) > _FULL:
                self.path.replace(self.path.with_name(self.path.name + ".1"))
                private_file(self.path)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            if self.beside is not None:
                self.beside.write(line + "\n")
                self.beside.flush()


def _checked(event: str, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Returns the facts in their order; a text is cut."""
    if set(facts) != set(EVENTS[event]):
        raise TypeError(f"{event} has the facts {', '.join(EVENTS[event])}")
    return {name: _short(facts[name]) for name in EVENTS[event]}


def _short(fact: Fact) -> Fact:
    if isinstance(fact, str):
        return fact[:LONGEST_FACT]
    if fact is None or isinstance(fact, int | float):
        return fact
    raise TypeError("a fact of an event is a text or a number")
