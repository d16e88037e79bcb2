"""Writes files and folders of reports, and checks beforehand that this is possible. It composes no report.

Only the owner may read a report that quotes recovered documents.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from securetm.private_files import FILE, private_folder
from securetm.reports.report_errors import CannotWriteReport


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turns an error of the system into one that names the path."""
    try:
        yield
    except OSError as problem:
        raise CannotWriteReport(str(path), problem.strerror or type(problem).__name__) from problem


def write_report(path: Path, text: str | bytes, *, private: bool = False) -> None:
    """Writes the file; a private one for its owner alone, even if it was there before."""
    with _named(path):
        here = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE if private else 0o666)
        with open(here, "wb") as file:
            if private and stat.S_ISREG(os.fstat(here).st_mode):
                os.fchmod(here, FILE)
            file.write(text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text)


def make_private(path: Path, *, parents: bool = False) -> None:
    """Makes a folder that only its owner can read, and refuses one that others can read."""
    if not parents and not path.parent.is_dir():
        raise CannotWriteReport(str(path), "its folder is not there")
    with _named(path):
        private_folder(path)


def check_writable(path: Path) -> None:
    """Refuses a file that could not be written later. It does not change a file that is there."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise CannotWriteReport(str(path), "it is a folder" if path.is_dir() else "its folder is not there")
    with _named(path):
        if path.is_file():
            os.close(os.open(path, os.O_WRONLY))
        elif not path.exists():  # a device, such as the terminal, is not tried
            _try_folder(path.resolve().parent)


def check_folder(path: Path) -> None:
    """Refuses a path that is no folder, or a folder into which nothing could be written later. It makes no folder."""
    if path.exists() and not path.is_dir():
        raise CannotWriteReport(str(path), "it is a file, and a folder is wanted")
    there = next(one for one in (path.resolve(), *path.resolve().parents) if one.exists())
    with _named(path):
        _try_folder(there)


def _try_folder(path: Path) -> None:
    """Makes a file in the folder that is deleted at once: only a trial shows whether the folder takes files."""
    with tempfile.TemporaryFile(dir=path):
        pass
