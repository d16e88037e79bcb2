"""Files and folders for their owner alone: made so from the first byte, whatever the umask, and checked when they are opened.

It does not know their content. A file that others may read or change is refused and not closed in silence, because only its
owner can know whether somebody did.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from securetm.errors import OpenToOthers, OwnedByAnother

FOLDER, FILE = 0o700, 0o600
_READ, _CHANGE = stat.S_IRGRP | stat.S_IROTH, stat.S_IWGRP | stat.S_IWOTH
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite puts beside a database, with the database's own mode


def make_folder(path: Path) -> None:
    """Makes the folder, and missing folders above it, for its owner alone; existing folders stay as they are."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(FOLDER, exist_ok=True)
    if not path.is_dir():
        path.mkdir(FOLDER)  # fails, and the error says what is in its place


def private_folder(path: Path) -> None:
    """The same, and refuses a folder that others may open. An empty one is closed to them, because it held nothing to read."""
    make_folder(path)
    found = path.stat()
    if found.st_uid == os.geteuid() and found.st_mode & (_READ | _CHANGE) and not any(path.iterdir()):
        path.chmod(FOLDER)
    check_private(path)


def private_file(path: Path) -> None:
    """Makes an empty file for its owner alone where there is none, so that no library makes one with the umask's mode.

    An existing file is checked and not opened, because closing it would drop the locks that SQLite holds on it in this process.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE))
    check_private(path)


def check_database(path: Path) -> None:
    """Checks a database, and the files that SQLite keeps beside it."""
    for one in (path, *(path.with_name(path.name + end) for end in _BESIDE)):
        if one.exists():
            check_private(one)


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A new file for its owner alone, in the place of one that is there."""
    path.unlink(missing_ok=True)  # another mode would not close the old file to processes that have it open
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE), "wb") as stream:
        yield stream


def sync(path: Path) -> None:
    """Returns once the file, or the names in the folder, are on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def copy_private(source: Path, to: Path) -> None:
    """A copy for its owner alone, whoever may read the source."""
    with source.open("rb") as kept, writing(to) as copy:
        shutil.copyfileobj(kept, copy)


def check_private(path: Path) -> None:
    """Refuses what group or others may read or change, and what belongs to somebody else."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise OwnedByAnother(str(path), found.st_uid)
    if open_to := found.st_mode & (_READ | _CHANGE):
        how = "read and change" if open_to & _READ and open_to & _CHANGE else "read" if open_to & _READ else "change"
        raise OpenToOthers(str(path), how, f"{stat.S_IMODE(found.st_mode):04o}")
