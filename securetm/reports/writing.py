"""Where reports are written, and who may read them then. It composes none.

What quotes recovered documents is readable by its owner alone, like the documents themselves.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from securetm.errors import CannotWriteReport


def write_report(path: Path, text: str, *, private: bool = False) -> None:
    """Writes the file; a place that is not there, or may not be written to, is said so."""
    try:
        here = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
        with open(here, "wb") as file:
            if private and stat.S_ISREG(os.fstat(here).st_mode):
                os.fchmod(here, 0o600)  # also where it was there before
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as problem:
        raise CannotWriteReport(str(path), problem.strerror or type(problem).__name__) from problem


def private_folder(path: Path, *, parents: bool = False) -> None:
    """Makes a folder that nobody else can look into; one that is there keeps its rights."""
    try:
        path.mkdir(mode=0o700, parents=parents, exist_ok=True)
    except OSError as problem:
        raise CannotWriteReport(str(path), problem.strerror or type(problem).__name__) from problem
