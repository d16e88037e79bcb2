"""The SHA-256 of every file of a run, so that a file that was changed, cut, lost or swapped is refused by name.

Digests are no signature: whoever can write into the folder can write digests too. Files that do not change any more get a
digest as soon as they are written, all others when the run has ended. Databases grow while a run works, and only SQLite checks
them then; once it has ended they get a digest of the rows in their tables, because the same rows may be other bytes. A
checkpoint and a party's memory carry a digest of their own from the beginning (models/tensor_file.py).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from securetm.federation.running_errors import ChangedFile, DamagedStore
from securetm.federation.store import read_json, write_json

RUN, KEPT = "run.json", "kept.json"
VERSION = 1
_OTHERS = (KEPT, "lock", "serve.jsonl", "pulse")  # a coordinator writes into these also after the run has ended
ADDED = ("audits/", "labels.json", "release/statement")  # later: trials, names of topics, what is said of what leaves
_DATABASES, _BESIDE = (".sqlite", ".ledger", ".others"), ("-wal", "-shm", "-journal")


@dataclass
class FileDigests:
    """The digests of a run's files, by their paths in its folder."""

    version: int = VERSION
    ended: bool = False  # then there is no other file of the run
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of what is in the file
    rows: dict[str, str] = field(default_factory=dict)  # of what is in the tables of a database


def is_bound(folder: Path) -> bool:
    """Whether the run writes digests of its files. A run of an earlier version does not, and its files are not checked."""
    facts = read_json(folder / RUN) if (folder / RUN).is_file() else {}
    return (folder / KEPT).is_file() or "digests" in facts


def bind(folder: Path, files: Iterable[Path]) -> None:
    """Adds the digests of files that will not change any more."""
    if not is_bound(folder):
        return
    kept = read_digests(folder) if (folder / KEPT).is_file() else FileDigests()
    _write(folder, replace(kept, files={**kept.files, **{_place(folder, file): _digest(file) for file in files}}))


def bind_all(folder: Path, more: Mapping[str, bytes]) -> None:
    """Writes the digests of all files of a run that ends now, and of `more` files that are written next."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_kept(_place(folder, path))]
    files = {_place(folder, path): _digest(path) for path in found if path.suffix not in _DATABASES}
    files |= {name: hashlib.sha256(content).hexdigest() for name, content in more.items()}
    rows = {_place(folder, path): _rows(path) for path in found if path.suffix in _DATABASES}
    _write(folder, FileDigests(VERSION, True, dict(sorted(files.items())), rows))


def check(folder: Path, *files: Path) -> None:
    """Refuses a file that is not as this run wrote it. While a run works, only files with a digest are checked."""
    if not is_bound(folder):
        return
    kept = read_digests(folder)
    for file in files:
        place = _place(folder, file)
        if place in kept.files:
            _compare(file, kept.files[place], _digest)
        elif kept.ended and not place.startswith(ADDED):
            raise ChangedFile(str(file), f"it is none of the files that this run kept ({KEPT})")


def check_all(folder: Path) -> None:
    """Checks every file of the run, and every database."""
    if not is_bound(folder):
        return
    kept = read_digests(folder)
    for place, digest in kept.files.items():
        if not place.startswith(ADDED):
            _compare(folder / place, digest, _digest)
    for place, digest in kept.rows.items():
        _compare(folder / place, digest, _rows)


def read_digests(folder: Path) -> FileDigests:
    """Reads the digests, or refuses a file that holds none."""
    path = folder / KEPT
    if not path.is_file():
        raise ChangedFile(str(path), "it is not there, and nothing else says what this run's files were")
    facts = read_json(path)
    try:
        kept = FileDigests(**facts)
        fine = kept.version == VERSION and all(isinstance(d, str) for d in [*kept.files.values(), *kept.rows.values()])
    except (TypeError, AttributeError) as problem:
        raise DamagedStore(str(path), "it is no list of files and their digests") from problem
    if not fine or not kept.files:
        raise DamagedStore(str(path), "it is no list of files and their digests, or one of a later version")
    return kept


def _write(folder: Path, kept: FileDigests) -> None:
    write_json(folder / KEPT, asdict(kept))


def _compare(file: Path, written: str, digest_of: Callable[[Path], str]) -> None:
    if not file.is_file():
        raise ChangedFile(str(file), "it is not there")
    found = digest_of(file)
    if found != written:
        raise ChangedFile(str(file), f"its SHA-256 is {found[:16]}…, and {written[:16]}… was written down in {KEPT}")


def _place(folder: Path, file: Path) -> str:
    return file.relative_to(folder).as_posix()


def _is_kept(place: str) -> bool:
    return place not in _OTHERS and not place.startswith(ADDED) and not place.endswith((*_BESIDE, ".new", ".part"))


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _rows(file: Path) -> str:
    """Returns the digest of all rows of all tables. An empty table that a later version adds changes nothing.

    It is opened as for writing, so that what SQLite puts beside it is gone again when it is closed.
    """
    digest = hashlib.sha256()
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=rw", uri=True)) as opened:
            named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
            for (table,) in opened.execute(named).fetchall():
                for row in opened.execute(f'SELECT * FROM "{table}" ORDER BY rowid'):  # noqa: S608 - out of the database itself
                    digest.update(repr((table, row)).encode())
    except sqlite3.DatabaseError as problem:
        raise ChangedFile(str(file), str(problem)) from problem
    return digest.hexdigest()
