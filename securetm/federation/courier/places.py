"""Where letters lie: a folder of this machine, or any store that `fsspec` reaches by a URL (`sftp://...`).

Whoever carries the files is trusted with nothing: it may drop, double, swap, cut, rename and hold back.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from securetm.errors import CannotWrite, Mistake, Unreadable
from securetm.federation.courier.letters import drawn_name

MOST_FILES = 100_000  # names that a pass looks at
_BESIDE = ".part"  # ends the name of a file that is not whole yet


class Place(Protocol):
    """A folder that several members write into and read from."""

    def files(self) -> Mapping[str, int]:
        """The plain files by name, with their lengths. At most so many as a pass looks at."""
        ...

    def read(self, name: str, length: int, start: int = 0) -> bytes:
        """At most so many bytes of a file; none where it is gone."""
        ...

    def write(self, content: bytes) -> str:
        """Writes a file whole or not at all, and returns the name that it was given."""
        ...

    def remove(self, name: str) -> None:
        """Deletes a file, if it is there and may be deleted."""
        ...


def place_of(text: str) -> Place:
    """The folder or store that was given on the command line."""
    return StoredFolder.reached(text) if "://" in text else LocalFolder(Path(text))


@dataclass(frozen=True)
class LocalFolder:
    """A folder of this machine's file system: a share, a mount, a stick, what `rsync` or a mail client carries."""

    path: Path

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise Mistake(
                "there is no folder {path}",
                hint="make it, or attach what holds it: letters are put into a folder that is there",
                path=str(self.path),
            )

    def files(self) -> Mapping[str, int]:
        """The plain files by name, with their lengths."""
        found: dict[str, int] = {}
        try:
            with os.scandir(self.path) as entries:
                for entry in islice(entries, MOST_FILES):
                    with suppress(OSError):  # gone meanwhile
                        if entry.is_file(follow_symlinks=False) and not entry.name.endswith(_BESIDE):
                            found[entry.name] = entry.stat(follow_symlinks=False).st_size
        except OSError as problem:
            raise Unreadable(str(self.path), problem.strerror or type(problem).__name__) from problem
        return found

    def read(self, name: str, length: int, start: int = 0) -> bytes:
        """At most so many bytes of a plain file; what waits when it is opened, such as a pipe, is not opened."""
        with suppress(OSError):
            opened = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(opened, "rb") as file:
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    file.seek(start)
                    return file.read(length)
        return b""

    def write(self, content: bytes) -> str:
        """Writes under another name, syncs, and renames. The group may read it: others carry it, and it is sealed."""
        name = drawn_name()
        beside = self.path / (name + _BESIDE)
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o664), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.rename(self.path / name)
            folder = os.open(self.path, os.O_RDONLY)
            try:
                with suppress(OSError):  # a share that cannot sync a folder
                    os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as problem:
            with suppress(OSError):
                beside.unlink()
            raise CannotWrite(str(self.path), problem.strerror or type(problem).__name__) from problem
        return name

    def remove(self, name: str) -> None:
        """Deletes a file, if it is there and may be deleted."""
        with suppress(OSError):
            (self.path / name).unlink()


@dataclass(frozen=True)
class StoredFolder:
    """A folder of a store that `fsspec` knows."""

    url: str
    path: str
    system: Any = field(repr=False)

    @classmethod
    def reached(cls, url: str) -> StoredFolder:
        """Connects to the store. What it needs to log in stands in the URL or in fsspec's own configuration."""
        import fsspec

        try:
            system, path = fsspec.url_to_fs(url)
            there = system.isdir(path)
        except Exception as problem:
            raise _not_reached(url, problem) from problem
        if not there and not _has_no_folders(system):
            raise Mistake("there is no folder {path}", hint="make it first, with the rights that all members need", path=url)
        return cls(url, str(path).rstrip("/"), system)

    def files(self) -> Mapping[str, int]:
        """The files by name, with their lengths."""
        try:
            self.system.invalidate_cache()
            listed = self.system.ls(self.path, detail=True)
        except FileNotFoundError:
            return {}
        except Exception as problem:
            raise _not_reached(self.url, problem) from problem
        plain = (one for one in islice(listed, MOST_FILES) if one.get("type") == "file" and isinstance(one.get("size"), int))
        named = ((str(one["name"]).rpartition("/")[2], one["size"]) for one in plain)
        return {name: size for name, size in named if name and not name.endswith(_BESIDE)}

    def read(self, name: str, length: int, start: int = 0) -> bytes:
        """At most so many bytes of a file."""
        try:
            with self.system.open(f"{self.path}/{name}", "rb") as file:
                file.seek(start)
                return bytes(file.read(length))
        except FileNotFoundError:
            return b""
        except Exception as problem:
            raise _not_reached(self.url, problem) from problem

    def write(self, content: bytes) -> str:
        """Writes under another name and moves it. A store without a move puts an object whole or not at all anyway."""
        name = drawn_name()
        beside = f"{self.path}/{name}{_BESIDE}"
        try:
            with self.system.open(beside, "wb") as file:
                file.write(content)
            self.system.mv(beside, f"{self.path}/{name}")
        except Exception as problem:
            raise _not_reached(self.url, problem) from problem
        return name

    def remove(self, name: str) -> None:
        """Deletes a file, if it is there and may be deleted."""
        with suppress(Exception):
            self.system.rm_file(f"{self.path}/{name}")


def _has_no_folders(system: Any) -> bool:
    """Whether names with a slash are all that the store has of folders, so that an empty one is not there."""
    return bool({"s3", "s3a", "gs", "gcs", "abfs", "az", "memory"} & set(_protocols(system)))


def _protocols(system: Any) -> tuple[str, ...]:
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


def _not_reached(url: str, problem: Exception) -> Mistake:
    return Mistake(
        "the store at {url} does not answer: {problem}",
        hint="try the same address with its own client; nothing is lost, the same command goes on",
        url=url.rpartition("@")[2] if "@" in url else url,  # what stands before it may be a password
        problem=f"{type(problem).__name__}: {problem}"[:200],
    )
