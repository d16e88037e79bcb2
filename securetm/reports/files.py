"""How files of reports are written, and standard output with errors that name it.

Only the owner may read a report that quotes recovered documents."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from securetm.errors import Mistake, refused_as, system_refused
from securetm.private_files import FILE, private_folder


class StandardOutput:
    def write(self, text: str) -> int:
        with output_named():
            return sys.stdout.write(text)

    def flush(self) -> None:
        with output_named():
            sys.stdout.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)


@contextmanager
def output_named() -> Iterator[None]:
    """Names standard output in an error of the system. A broken pipe stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        to_nowhere(sys.stdout.fileno())  # the rest of the buffer could not be written at exit either
        raise system_refused("standard output", "cannot be written", problem) from problem


def to_nowhere(stream: int) -> None:
    """Discards everything that is written to the stream from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def cannot_write(path: Path | str, problem: str) -> Mistake:
    """The mistake of a place for a report to which nothing can be written."""
    hint = "name another place, in a folder that is there and that you may write to"
    return Mistake("{path} cannot be written: {problem}", hint=hint, path=str(path), problem=problem)


def write_report(path: Path, text: str | bytes, *, private: bool = False) -> None:
    """Writes the file; a private one for its owner alone, even if it was there before."""
    with refused_as(cannot_write, path):
        here = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE if private else 0o666)
        with open(here, "wb") as file:
            if private and stat.S_ISREG(os.fstat(here).st_mode):
                os.fchmod(here, FILE)
            file.write(text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text)


def make_private(path: Path, *, parents: bool = False) -> None:
    """Makes a folder that only its owner can read, and refuses one that others can read."""
    if not parents and not path.parent.is_dir():
        raise cannot_write(path, "its folder is not there")
    with refused_as(cannot_write, path):
        private_folder(path)


def check_writable(path: Path) -> None:
    """Refuses a file that could not be written later. It does not change a file that is there."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise cannot_write(path, "it is a folder" if path.is_dir() else "its folder is not there")
    with refused_as(cannot_write, path):
        if path.is_file():
            os.close(os.open(path, os.O_WRONLY))
        elif not path.exists():  # a device, such as the terminal, is not tried
            _try_folder(path.resolve().parent)


def check_folder(path: Path) -> None:
    """Refuses a path that is no folder, or a folder into which nothing could be written later. It makes no folder."""
    if path.exists() and not path.is_dir():
        raise cannot_write(path, "it is a file, and a folder is wanted")
    there = next(one for one in (path.resolve(), *path.resolve().parents) if one.exists())
    with refused_as(cannot_write, path):
        _try_folder(there)


def _try_folder(path: Path) -> None:
    """Makes a file in the folder that is deleted at once: only a trial shows whether the folder takes files."""
    with tempfile.TemporaryFile(dir=path):
        pass
