"""Keeps a message until it is whole: in memory, or on disk where the messages together would need too much memory.

A file has no name from its first byte on, so nothing is left of it however the process ends. What is on disk is not read back
into memory: whoever takes it gets a view of the file, and the system reads the parts that are looked at. It does not know what
it keeps.
"""

from __future__ import annotations

import mmap
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from securetm.contracts import Message
from securetm.errors import Failed
from securetm.private_files import private_folder


@dataclass
class SpoolRoom:
    """What all spools of one process may use together in memory, and the folder for the rest."""

    folder: Path
    most: int = 64 << 20  # bytes in memory
    used: int = 0
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        private_folder(self.folder)

    def reserve(self, size: int) -> bool:
        """Takes so many bytes of memory if there are any left."""
        with self._lock:
            fits = self.used + size <= self.most
            self.used += size if fits else 0
        return fits

    def release(self, size: int) -> None:
        """Gives them back."""
        with self._lock:
            self.used -= size


@dataclass
class Spool:
    """The bytes of one message of a known length."""

    room: SpoolRoom
    length: int
    _parts: list[Message] = field(default_factory=list)
    _file: BinaryIO | None = None
    _reserved: int = 0

    def __post_init__(self) -> None:
        if self.room.reserve(self.length):
            self._reserved = self.length
        else:
            self._file = self._opened()

    def add(self, part: Message) -> None:
        """Adds the next bytes."""
        if self._file is None:
            self._parts.append(part)
            return
        try:
            self._file.write(part)
        except OSError as problem:
            raise self._full(problem) from problem

    def take(self) -> Message:
        """Returns the whole message and closes the spool: of what is on disk a view, and the file goes with it."""
        try:
            if self._file is None:
                return b"".join(self._parts)
            return memoryview(mmap.mmap(self._file.fileno(), self.length, access=mmap.ACCESS_READ))
        except OSError as problem:
            raise self._full(problem) from problem
        finally:
            self.close()

    def close(self) -> None:
        """Forgets the bytes."""
        self.room.release(self._reserved)
        self._reserved, self._parts = 0, []
        if self._file is not None:
            self._file.close()

    def _opened(self) -> BinaryIO:
        try:
            return tempfile.TemporaryFile(dir=self.room.folder, buffering=0)
        except OSError as problem:
            raise self._full(problem) from problem

    def _full(self, problem: OSError) -> Failed:
        return Failed(
            "there is no room for the replies of the parties in {folder}: {why}",
            hint="make room on the disk; the run goes on from its last checkpoint when the coordinator starts again",
            folder=str(self.room.folder),
            why=problem.strerror or type(problem).__name__,
        )
