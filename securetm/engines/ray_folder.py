"""The folder of one Ray cluster's own files: for its owner alone, with a fresh token, and gone once the cluster is.

Ray opens the folders that it makes to everybody, so they lie inside this one. Its files are logs, sockets, and what it moves
out of memory. The driver of a party that was killed deletes it; where the driver was killed, too, the next start does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from securetm.entropy import OperatingSystem
from securetm.private_files import private_file, writing

TOKEN = "token"  # noqa: S105 - the name of a file
_LOCK = "lock"  # held as long as somebody uses the folder
_PREFIX = "securetm-ray-"
_LONGEST = 20  # characters of the folder above: the path of a socket may have about a hundred
_TOKEN_BYTES = 32


class RayFolder:
    """A new folder. `lock` is an open file to be handed to the driver, too."""

    def __init__(self) -> None:
        above = place()
        remove_left(above)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        private_file(self.path / f"{_LOCK}.new")
        self.lock: IO[str] = (self.path / f"{_LOCK}.new").open("r+")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        (self.path / f"{_LOCK}.new").rename(self.path / _LOCK)  # now another start can tell that it is in use
        with writing(self.token) as file:
            file.write(OperatingSystem().bytes(_TOKEN_BYTES).hex().encode())

    @property
    def token(self) -> Path:
        """The file of the token, which every process of the cluster reads."""
        return self.path / TOKEN

    def remove(self) -> None:
        """Deletes the folder. Nobody uses it any more."""
        self.lock.close()
        shutil.rmtree(self.path, ignore_errors=True)


def place() -> Path:
    """Where such folders lie: with temporary files, unless that path is too long for sockets."""
    usual = tempfile.gettempdir()
    return Path(usual if len(usual) <= _LONGEST else "/tmp")  # noqa: S108 - the folder in it is its owner's alone


def remove_left(above: Path) -> None:
    """Deletes this user's folders that nobody uses any more."""
    for folder in above.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody uses it, or it is another user's
            if folder.stat().st_uid == os.getuid():
                with (folder / _LOCK).open("r+") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
