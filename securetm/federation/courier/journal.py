"""What a coordinator's session was told by the world, on disk in its order: draws, answers, who was there.

A session is straight code that waits for letters, for days. When its process ends, the next one runs it again from its
beginning, over the coordinator's folder as it was then, and the journal tells it the same. So it comes to the same place, with
the same bytes, and goes on. Where something differs on the way (another version of the software), a new session begins.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from securetm.data_classes import dataclass, field
from securetm.entropy import OperatingSystem
from securetm.private_files import private_file, private_folder, sync


class OffTrack(Exception):
    """The session does not come to where it was: it ends, and a new one begins from the last checkpoint."""


class Paused(BaseException):
    """A pass has ended, and the session goes on in the next one."""


def recover(run: Path, coordinator: Path) -> None:
    """Puts the coordinator's folder back that a process left aside when it ended while it ran a session again."""
    if (aside := run / _ASIDE).is_dir():
        shutil.rmtree(coordinator, ignore_errors=True)
        aside.rename(coordinator)


_ASIDE, _BEFORE, _JOURNAL = "coordinator as it is", "coordinator before", "journal"


@dataclass
class Journal:
    folder: Path
    coordinator: Path
    _entries: list[tuple[str, Any]] = field(default_factory=list)
    _at: int = 0
    _open: Any = None

    @property
    def is_under_way(self) -> bool:
        return (self.folder / _JOURNAL).is_file()

    @property
    def is_open(self) -> bool:
        return self._open is not None

    @property
    def repeats(self) -> bool:
        """Whether the session is still where it was before."""
        return self._at < len(self._entries)

    @contextmanager
    def session(self) -> Iterator[None]:
        """One session. It ends with the block, unless that was left by `Paused` or a signal."""
        self._begin()
        try:
            yield
        except Exception as problem:
            if isinstance(problem, OffTrack):
                recover(self.folder, self.coordinator)
            self._end()
            raise
        else:
            self._end()
        finally:
            if self._open is not None:
                self._open.close()
                self._open = None

    def told(self, kind: str, tell: Callable[[], Any]) -> Any:
        """What the world told, the first time or again."""
        if self.repeats:
            before, value = self._entries[self._at]
            if before != kind:
                raise OffTrack()
            self._at += 1
            return value
        self._goes_on()
        value = tell()
        self._entries.append((kind, value))
        self._at += 1
        packed = msgspec.msgpack.encode((kind, value))
        self._open.write(len(packed).to_bytes(8, "big") + packed)
        return value

    def keep(self) -> None:
        """Returns once all that was told is on disk."""
        if self._open is not None:
            self._open.flush()
            os.fsync(self._open.fileno())

    def _begin(self) -> None:
        private_folder(self.folder)
        before, path = self.folder / _BEFORE, self.folder / _JOURNAL
        self._entries, self._at = [], 0
        if not path.is_file():
            shutil.rmtree(before, ignore_errors=True)
            private_folder(self.coordinator)
            shutil.copytree(self.coordinator, before)
            private_file(path)
            sync(self.folder)
        else:
            self._entries = list(_read(path))
            self.coordinator.rename(self.folder / _ASIDE)
            shutil.copytree(before, self.coordinator)
        self._open = path.open("r+b")
        self._open.truncate(sum(8 + len(msgspec.msgpack.encode(entry)) for entry in self._entries))  # the last may be half
        self._open.seek(0, os.SEEK_END)

    def _goes_on(self) -> None:
        """The session is where it was: what was set aside is what the folder holds now."""
        shutil.rmtree(self.folder / _ASIDE, ignore_errors=True)

    def _end(self) -> None:
        self._goes_on()
        (self.folder / _JOURNAL).unlink(missing_ok=True)
        shutil.rmtree(self.folder / _BEFORE, ignore_errors=True)


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    content, at = path.read_bytes(), 0
    while (end := at + 8 + int.from_bytes(content[at : at + 8], "big")) <= len(content) and end > at + 8:
        kind, value = msgspec.msgpack.decode(content[at + 8 : end])
        yield kind, value
        at = end


@dataclass(frozen=True)
class KeptEntropy:
    """Draws of the operating system that are the same when the session is run again."""

    journal: Journal

    def bytes(self, n: int) -> bytes:
        return bytes(self.journal.told("drawn", lambda: OperatingSystem().bytes(n)))
