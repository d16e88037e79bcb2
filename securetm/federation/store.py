"""The stores of the roles: each role has one folder with one SQLite file, and no facts of another role in it.

A file is written under another name and moved into place, so a killed process leaves the old file or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from securetm.contracts import Array, State
from securetm.errors import CannotWrite, SecuretmError, refused_as
from securetm.foreign_text import json_text
from securetm.interrupts import undisturbed
from securetm.models.tensor_file import packed, unpacked
from securetm.private_files import (
    check_database,
    check_private,
    copy_private,
    make_folder,
    private_file,
    private_folder,
    sync,
    writing,
)

# A figure may be not a number (a model that diverged, no held-out documents), which SQLite keeps as NULL.
COMMON = "CREATE TABLE IF NOT EXISTS store (key TEXT PRIMARY KEY, value BLOB NOT NULL);"
_COORDINATOR = (
    COMMON
    + """
CREATE TABLE IF NOT EXISTS rounds (serial INTEGER PRIMARY KEY, question TEXT NOT NULL, number INTEGER NOT NULL,
  survivors TEXT NOT NULL, bytes_up INTEGER NOT NULL, bytes_down INTEGER NOT NULL, seconds REAL NOT NULL);
CREATE TABLE IF NOT EXISTS losses (serial INTEGER PRIMARY KEY, measure TEXT NOT NULL, value REAL);
CREATE TABLE IF NOT EXISTS refusals (at INTEGER PRIMARY KEY, serial INTEGER NOT NULL, party TEXT NOT NULL,
  name TEXT NOT NULL, reason TEXT NOT NULL);
"""
)
_UNWRITTEN = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
FIRST_KEPT = LAST_KEPT = 1_000  # of what others can make this role write down
LONGEST_REASON = 500  # characters: a reason may quote a message, and must not fill the disk
_LARGE = 1 << 16
_HEAD = 20  # bytes of a database that say how it is written
_BESIDE = bytes.fromhex("8f1c6be2a7d94e03b5f0c81d2a6e9374")  # in place of a value that lies in a file of its own


class DamagedStore(SecuretmError):
    """{path} is damaged: {problem}"""

    path: str
    problem: str
    hint = "restore it from a copy; an interrupted run never leaves a damaged file behind, a full disk or another program does"


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Opens a database to read. Nothing is made or changed in it or beside it."""
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    with tempfile.TemporaryDirectory() as folder:
        how, place = "mode=ro", path
        if not index.exists() and log.exists() and log.stat().st_size:  # SQLite would write the index, so a copy is read
            how, place = "mode=rw", Path(folder) / path.name
            for one in (path, log):
                copy_private(one, place.with_name(one.name))
        elif not index.exists() and _has_log(path):
            how = "immutable=1"  # else SQLite makes both files, and leaves them
        with closing(sqlite3.connect(f"{place.absolute().as_uri()}?{how}", isolation_level=None, uri=True)) as opened:
            yield opened


def _has_log(path: Path) -> bool:
    """Whether its writers use a write-ahead log: so says a byte of its head."""
    with path.open("rb") as file:
        return file.read(_HEAD)[18:19] == b"\x02"


class SqliteStore:
    """A role's SQLite file: its store and its tables. Rows are collected and written together by `keep`.

    What is written survives a killed process, and with `synced` a loss of power too, which costs milliseconds a write.
    """

    def __init__(self, path: Path, tables: str, *, synced: bool = True) -> None:
        with refused_as(CannotWrite, path):
            private_folder(path.parent)
            private_file(path)
            check_database(path)
        self.path = path
        self._synced = synced
        # No statements are kept: each would hold the values that it was last given, and one of them may be a whole vector.
        self._open = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=0)
        with self._named():
            self._open.execute("PRAGMA journal_mode=WAL")
            self._open.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
            self._open.executescript(tables)
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []

    def get(self, key: str) -> bytes | None:
        found = self.rows("SELECT value FROM store WHERE key = ?", key)
        if found and found[0][0] == _BESIDE:
            check_private(self._beside(key))
            return self._beside(key).read_bytes()
        return bytes(found[0][0]) if found else None

    def put(self, key: str, value: bytes) -> None:
        """Writes the value to disk before it returns. A large value goes into a file of its own."""
        large = len(value) > _LARGE
        if large:
            write_bytes(self._beside(key), value, synced=self._synced)
        there = self.rows("SELECT 1 FROM store WHERE key = ? AND value = ?", key, _BESIDE)
        self.now("INSERT OR REPLACE INTO store VALUES (?, ?)", key, _BESIDE if large else value)
        if there and not large:
            self._beside(key).unlink(missing_ok=True)

    def drop(self, key: str) -> None:
        self.now("DELETE FROM store WHERE key = ?", key)
        self._beside(key).unlink(missing_ok=True)

    def rows(self, question: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._named():
            return self._open.execute(question, values).fetchall()

    def now(self, change: str, *values: Any) -> None:
        """Makes one change, on disk before it returns, or none."""
        with self.at_once():
            self.later(change, *values)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Writes the changes of its block to disk at its end, or drops them: they do not pile up where the disk is full."""
        before = len(self._waiting)
        try:
            yield
            self.keep()
        except BaseException:
            del self._waiting[before:]
            raise

    def later(self, change: str, *values: Any) -> None:
        """Queues one change for the next `keep`."""
        self._waiting.append((change, values))

    def note(self, table: str, row: Mapping[str, Any]) -> None:
        """Adds a row at once to a table that others can make longer. Only its first and its last rows stay."""
        columns, places = ", ".join(row), ", ".join("?" * len(row))
        last = f"(SELECT MAX(at) FROM {table})"  # noqa: S608 - names are our own
        with self.at_once():
            self.later(f"INSERT INTO {table} ({columns}) VALUES ({places})", *row.values())  # noqa: S608
            self.later(f"DELETE FROM {table} WHERE at > ? AND at <= {last} - ?", FIRST_KEPT, LAST_KEPT)  # noqa: S608

    def noted(self, table: str) -> int:
        """Returns how many rows were ever added there."""
        return int(self.rows(f"SELECT COALESCE(MAX(at), 0) FROM {table}")[0][0])  # noqa: S608

    def keep(self) -> None:
        """Writes all queued changes in one transaction. Ctrl-C waits until they are on disk, unless it comes twice."""
        with self._named(), undisturbed():
            try:
                self._open.execute("BEGIN")
                for change, values in self._waiting:
                    self._open.execute(change, values)
                self._open.execute("COMMIT")
            finally:
                if self._open.in_transaction:
                    self._open.execute("ROLLBACK")
            self._waiting = []

    def close(self) -> None:
        self.keep()
        self._open.close()

    def _beside(self, key: str) -> Path:
        return self.path.with_suffix(".large") / hashlib.blake2b(key.encode(), digest_size=16).hexdigest()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as problem:
            code = vars(problem).get("sqlite_errorcode", sqlite3.SQLITE_ERROR)  # what Python itself complains of has none
            if code & 0xFF in _UNWRITTEN:
                raise CannotWrite(str(self.path), str(problem)) from problem
            raise DamagedStore(str(self.path), str(problem)) from problem


HANDED_OUT = "handed_out.json"  # apart, because parties may come for the model long after a run's files are bound


class CoordinatorStore(SqliteStore):
    """The coordinator's store: answers, rounds and the model. It holds no figure of a party."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "rounds.sqlite", _COORDINATOR)
        self.folder = folder

    def keep_state(self, name: str, state: State, facts: Mapping[str, Any]) -> None:
        """Writes rows first and the state last, so that a checkpoint never names a round without a record."""
        self.keep()
        write_arrays(self.folder / f"{name}.safetensors", state, facts)

    def kept_state(self, name: str) -> tuple[State, dict[str, Any]] | None:
        path = self.folder / f"{name}.safetensors"
        return read_arrays(path) if path.is_file() else None

    def handed_out(self) -> frozenset[str]:
        """The parties that have the finished model."""
        path = self.folder / HANDED_OUT
        if not path.is_file():
            return frozenset()
        names = read_json(path).get("parties")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DamagedStore(str(path), "it is no list of parties")
        return frozenset(names)

    def keep_handed_out(self, names: Iterable[str]) -> None:
        write_json(self.folder / HANDED_OUT, {"parties": sorted(self.handed_out().union(names))})

    def drop_states(self, pattern: str) -> None:
        for path in self.folder.glob(f"{pattern}.safetensors"):
            path.unlink()

    def forget_after(self, serial: int) -> None:
        """Deletes the records of rounds that will be run again."""
        for table in ("rounds", "losses", "refusals"):
            self.now(f"DELETE FROM {table} WHERE serial > ?", serial)  # noqa: S608 - names are our own


def named(problem: Exception) -> dict[str, str]:
    """Returns the name of a problem and its reason, for a row of a table."""
    return {"name": type(problem).__name__, "reason": str(problem)[:LONGEST_REASON]}


def write_arrays(path: Path, state: State, facts: Mapping[str, Any]) -> None:
    """Writes named arrays and a few facts into one file."""
    write_bytes(path, packed(state, {"facts": json.dumps(dict(facts))}))


def read_arrays(path: Path, *, bare: bool = False) -> tuple[dict[str, Array], dict[str, Any]]:
    """Reads what `write_arrays` wrote, if nobody else could change it. With `bare`, reads the arrays of any file."""
    try:
        if not bare:
            check_private(path)
        metadata, arrays = unpacked(path)
        return arrays, {} if bare else json.loads(metadata["facts"])
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as problem:
        raise DamagedStore(str(path), str(problem)) from problem


def write_bytes(path: Path, content: bytes, *, synced: bool = True) -> None:
    """Writes a whole file or none, for its owner alone. With `synced`, it survives a loss of power."""
    with refused_as(CannotWrite, path):
        make_folder(path.parent)
        beside = path.with_name(path.name + ".new")
        with writing(beside) as stream:
            stream.write(content)
            stream.flush()
            if synced:
                os.fsync(stream.fileno())
        beside.replace(path)
        if synced:
            sync(path.parent)


def write_json(path: Path, content: Any) -> None:
    write_bytes(path, json_bytes(content))


def json_bytes(content: Any) -> bytes:
    return (json_text(json.dumps(content, indent=2, ensure_ascii=False)) + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON document that holds a table, or refuses a damaged file."""
    try:
        check_private(path)
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise DamagedStore(str(path), str(problem)) from problem
    if not isinstance(content, dict):
        raise DamagedStore(str(path), "it holds no table")
    return content
