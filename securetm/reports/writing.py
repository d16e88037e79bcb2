"""Where reports are written, and who may read them then. It composes none.

What quotes recovered documents is readable by its owner alone, like the documents themselves.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from securetm.private_files import FILE, private_folder
from securetm.reports.report_errors import CannotWriteReport


def write_report(path: Path, text: str, *, private: bool = False) -> None:
    """Writes the file; a place that is not there, or may not be written to, is said so."""
    try:
        here = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE if private else 0o666)
        with open(here, "wb") as file:
            if private and stat.S_ISREG(os.fstat(here).st_mode):
                os.fchmod(here, FILE)  # also where it was there before
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as problem:
        raise CannotWriteReport(str(path), problem.strerror or type(problem).__name__) from problem


def make_private(path: Path, *, parents: bool = False) -> None:
    """Makes a folder that nobody else can look into, and refuses one into which others can."""
    if not parents and not path.parent.is_dir():
        raise CannotWriteReport(str(path), "its folder is not there")
    try:
        private_folder(path)
    except OSError as problem:
        raise CannotWriteReport(str(path), problem.strerror or type(problem).__name__) from problem


def check_writable(path: Path) -> None:
    """Refuses a file that could not be written later; one that is there keeps what is in it."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise CannotWriteReport(str(path), "it is a folder" if path.is_dir() else "its folder is not there")
    try:
        if path.is_file():
            os.close(os.open(path, os.O_WRONLY))
        elif not path.exists():  # what is there and no file, such as the terminal, is left to whoever writes
            _try_folder(path.resolve().parent)
    except OSError as problem:
        raise CannotWriteReport(str(path), problem.strerror or type(problem).__name__) from problem


def check_folder(path: Path) -> None:
    """Refuses a folder that is none, or into which nothing could be written later; it makes none."""
    if path.exists() and not path.is_dir():
        raise CannotWriteReport(str(path), "it is a file, and a folder is wanted")
    there = next(one for one in (path.resolve(), *path.resolve().parents) if one.exists())
    try:
        _try_folder(there)
    except OSError as problem:
        raise CannotWriteReport(str(path), problem.strerror or type(problem).__name__) from problem


def _try_folder(path: Path) -> None:
    """Whether a folder takes a file cannot be asked, only tried: this one has no name, or is gone at once."""
    with tempfile.TemporaryFile(dir=path):
        pass
