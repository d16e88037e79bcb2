"""Named arrays in a zip with checksums, without pickle: what is kept of documents, and not a format for exchange.

A file is written under another name and then moved, so that a reader finds the old file or the new one, never a part of one.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path

import numpy as np

from securetm.contracts import Array
from securetm.errors import CannotWrite, Mistake, NoSuchPath, Unreadable
from securetm.private_files import make_folder, writing


def save_arrays(path: Path, arrays: dict[str, Array]) -> None:
    """Writes named arrays, whole or not at all, for their owner alone to read; the same arrays give the same bytes."""
    try:
        make_folder(path.parent)
        _replace(path, arrays)
    except OSError as fault:
        raise CannotWrite(str(path), fault.strerror or type(fault).__name__) from fault


def _replace(path: Path, arrays: dict[str, Array]) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with writing(beside) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mistakes the arrays for its keywords
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        if beside.exists():
            beside.unlink()


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file, each compared with its checksum."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}
    except FileNotFoundError as fault:
        raise NoSuchPath(str(path)) from fault
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as fault:
        raise damaged_file(str(path), "it is not a whole corpus file") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as member:
        array: Array = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):  # reading on to the end makes zipfile compare the checksum
            raise zipfile.BadZipFile(name)
        return array


def damaged_file(path: str, problem: str) -> Mistake:
    """A file that is not as it was written."""
    return Mistake(
        "{path} is damaged or was cut short: {problem}",
        hint="copy or download it again; compare its size with the original's",
        path=path,
        problem=problem,
    )


def other_version(path: str, found: int, known: int) -> Mistake:
    """A file of another version of its format."""
    return Mistake(
        "{path} was written in version {found} of its format; this securetm reads version {known}",
        hint="write it again with this securetm, or read it with the one that wrote it",
        path=path,
        found=found,
        known=known,
    )
