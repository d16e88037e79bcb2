"""The folder of a corpus while it is built: whose build it is, and that nothing is in it which no build put there.

A build that was stopped goes on only with the same source and settings. What is another's is refused, and never deleted.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securetm.corpus.readers import files_of
from securetm.corpus.shards.manifest import BUILDING, MANIFEST, WORDS, write_whole
from securetm.corpus.shards.shard_errors import FolderTaken, OtherBuild, SourceChanged
from securetm.private_files import private_file, private_folder

_SOURCE, _LOCK = "source.json", "lock"
_BEGUN = {_LOCK, _SOURCE, f"{_SOURCE}.unfinished"}  # what a build has before it kept anything
_OURS = (BUILDING, MANIFEST, WORDS, f"{WORDS}.unfinished", f"{MANIFEST}.unfinished")


@dataclass(frozen=True)
class BuildingFolder:
    """One folder that a build fills. What is not finished lies in a folder inside it."""

    folder: Path

    @property
    def building(self) -> Path:
        """Where a build keeps what it has not finished."""
        return self.folder / BUILDING

    def check_free(self) -> None:
        """Refuses a folder with a finished corpus, or with anything that no build put there."""
        if not self.folder.is_dir():
            return
        if not self.building.is_dir():
            if (self.folder / MANIFEST).is_file():
                raise FolderTaken(str(self.folder), "a finished corpus")
            if any(self.folder.iterdir()):
                raise FolderTaken(str(self.folder), "other files")
            return
        begun = (self.building / _SOURCE).is_file()
        inside = {path.name for path in self.building.iterdir()} - {_LOCK, f"{_SOURCE}.unfinished"}
        beside = [path for path in self.folder.iterdir() if path.name not in _OURS and path.suffix != ".shard"]
        if beside or (inside and not begun):
            raise FolderTaken(str(self.folder), "other files")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Makes the folders. Refuses while another process builds there. What fails before it kept anything leaves none."""
        missing = [one for one in (self.building, self.folder) if not one.exists()]
        private_folder(self.folder)
        private_folder(self.building)
        private_file(self.building / _LOCK)
        with (self.building / _LOCK).open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as busy:
                raise FolderTaken(str(self.folder), "a corpus that another process is building") from busy
            try:
                yield
            except BaseException:
                self._leave_none_of(missing)
                raise

    def check_same(self, source: str, settings: Mapping[str, Any]) -> None:
        """Refuses another source or other settings than those that the build began with; a new build notes them."""
        path, now = self.building / _SOURCE, json.loads(json.dumps({"files": _state_of(source), "settings": settings}))
        if not path.is_file():
            write_whole(path, now)
            return
        try:
            then = json.loads(path.read_bytes())
            differing = [name for name, value in now["settings"].items() if then["settings"].get(name) != value]
            same_files = then["files"] == now["files"]
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise FolderTaken(str(self.folder), "a build whose settings are damaged") from fault
        if differing:
            first = differing[0]
            raise OtherBuild(str(self.folder), first, _short(then["settings"].get(first)), _short(now["settings"][first]))
        if not same_files:
            raise SourceChanged(source, str(self.folder))

    def _leave_none_of(self, missing: list[Path]) -> None:
        """Deletes the folders that were missing, if they hold nothing that a build could go on with."""
        if self.building in missing and not {path.name for path in self.building.iterdir()} - _BEGUN:
            self.clear()
            for folder in set(missing) - {self.building}:
                with suppress(OSError):  # somebody put something there meanwhile
                    folder.rmdir()

    def is_finished(self) -> bool:
        """Whether a whole corpus is there, and only the end of its build was cut off."""
        return (self.folder / MANIFEST).is_file()

    def clear(self) -> None:
        """Deletes what only the build needed; what names the build goes last, so that this can be cut off and go on."""
        for path in self.building.iterdir():
            if path.name not in (_SOURCE, _LOCK):
                path.unlink()
        for name in (_SOURCE, _LOCK):
            with suppress(FileNotFoundError):
                (self.building / name).unlink()
        self.building.rmdir()


def _state_of(source: str) -> str:
    """A digest of the names, sizes and times of the files that documents are read from."""
    digest = hashlib.blake2b(digest_size=16)
    for file in files_of(source):
        found = file.stat()
        digest.update(f"{file.name}\0{found.st_size}\0{found.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _short(value: Any) -> str:
    return f"{len(value)} words" if isinstance(value, list | tuple) else str(value)
