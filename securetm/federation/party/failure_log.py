"""A party's own failures, and how many rows and coordinates counted as nothing. The party tells nobody.

A failure that showed in a reply would be an answer about the documents it came from. So replies go on as if nothing had
happened, and the party's own user reads the failure here.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from securetm.answers.block_sums import RowFailure
from securetm.data_classes import asdict, dataclass
from securetm.errors import SecuretmError
from securetm.federation.party_store import PartyStore
from securetm.federation.store import LONGEST_REASON, named


@dataclass(frozen=True)
class Failure:
    """One failure as it was written down: the name of its class, its sentence and what to do."""

    name: str
    reason: str
    advice: str


class FailureLog:
    def __init__(self, store: PartyStore, told: Callable[[Failure], None]) -> None:
        self._store, self._told = store, told

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Writes down any exception of its block, and lets none of them out."""
        try:
            yield
        except Exception as failure:  # noqa: BLE001 - any exception that left from here would tell of documents
            self.failed(failure)

    def failed(self, failure: Exception) -> None:
        if isinstance(failure, SecuretmError):
            advice = failure.advice()
        else:
            frames = reversed(traceback.extract_tb(failure.__traceback__)[-3:])
            advice = " <- ".join(f"{frame.filename}:{frame.lineno}" for frame in frames)
        self._write(Failure(**named(failure), advice=advice[:LONGEST_REASON]))

    def rows_failed(self, failures: Sequence[RowFailure]) -> None:
        """Writes down how rows failed that then counted as nothing."""
        for one in failures:
            self._write(Failure(one.name, one.reason[:LONGEST_REASON], one.where[:LONGEST_REASON]))

    def _write(self, written: Failure) -> None:
        self._store.note("failures", asdict(written))
        self._told(written)

    def lost(self, serial: int, question: str, numbers: int) -> None:
        """Writes down how many rows and coordinates of an answer counted as nothing, because they failed or were not finite."""
        if numbers:
            self._store.later("INSERT OR REPLACE INTO lost VALUES (?, ?, ?)", serial, question, numbers)


def failures_in(folder: Path) -> list[Failure]:
    """Returns the failures that a party wrote down. Its own user reads them, or a simulation."""
    return [Failure(*row) for row in _read(folder, "SELECT name, reason, advice FROM failures ORDER BY at")]


def lost_in(folder: Path) -> int:
    """Returns how many rows and coordinates of a party's answers counted as nothing in the whole run."""
    return int(_read(folder, "SELECT COALESCE(SUM(numbers), 0) FROM lost")[0][0])


def _read(folder: Path, question: str) -> list[tuple[Any, ...]]:
    with closing(PartyStore(folder, synced=False)) as store:
        return store.rows(question)
