"""What a party writes down and tells nobody: its own failures, and how many rows and coordinates counted as nothing.

A failure that showed in a reply would be an answer about the documents it came from. So replies go on as if nothing had
happened, and whoever runs the party reads here that something did.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securetm.errors import SecuretmError
from securetm.federation.store import PartyStore

LONGEST_REASON = 500  # characters: it may quote a message, and must not fill the disk
MOST_FAILURES = 1000  # that are kept, the latest ones


@dataclass(frozen=True)
class Failure:
    """One failure as it was written down: its class, its sentence and what to do."""

    name: str
    reason: str
    advice: str


class FailureLog:
    """The failures of a party, in its own store."""

    def __init__(self, store: PartyStore) -> None:
        self._store = store

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Writes down any exception of its block, and lets none of them out."""
        try:
            yield
        except Exception as failure:  # noqa: BLE001 - any exception that left from here would tell of documents
            self.failed(failure)

    def failed(self, failure: Exception) -> None:
        """One failure; the oldest ones give way."""
        advice = failure.advice() if isinstance(failure, SecuretmError) else _where(failure)
        row = (type(failure).__name__, str(failure)[:LONGEST_REASON], advice[:LONGEST_REASON])
        with self._store.at_once():
            self._store.later("INSERT INTO failures (name, reason, advice) VALUES (?, ?, ?)", *row)
            self._store.later("DELETE FROM failures WHERE at <= (SELECT MAX(at) FROM failures) - ?", MOST_FAILURES)

    def lost(self, serial: int, question: str, numbers: int) -> None:
        """How many rows and coordinates of an answer counted as nothing, since they were not finite."""
        if numbers:
            self._store.later("INSERT OR REPLACE INTO lost VALUES (?, ?, ?)", serial, question, numbers)


def failures_in(folder: Path) -> list[Failure]:
    """What a party wrote down of its failures; read by its own user, or by a simulation."""
    return [Failure(*row) for row in _read(folder, "SELECT name, reason, advice FROM failures ORDER BY at")]


def lost_in(folder: Path) -> int:
    """How many rows and coordinates of a party's answers counted as nothing in the whole run."""
    return int(_read(folder, "SELECT COALESCE(SUM(numbers), 0) FROM lost")[0][0])


def _read(folder: Path, question: str) -> list[tuple[Any, ...]]:
    store = PartyStore(folder, synced=False)
    try:
        return store.rows(question)
    finally:
        store.close()


def _where(failure: Exception) -> str:
    """The last places that an unexpected failure came through, for whoever corrects it."""
    return " <- ".join(
        f"{frame.filename}:{frame.lineno}" for frame in reversed(traceback.extract_tb(failure.__traceback__)[-3:])
    )
