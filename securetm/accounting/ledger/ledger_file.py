"""The ledger's SQLite file: entries in a hash chain, which are appended, and checked when read.

Each head is a digest of the previous head and of the new content, so that it commits to everything before it. A peer that knows
an older head can check with digests alone that a newer head extends it, and learns no entry. Every content carries 16 random
bytes, so that nobody can find it by hashing guesses.

The write-ahead log is synced at each commit, so that an entry survives a killed process and a loss of power once `appending`
has ended. A new file is complete before it gets its name, so that an empty file is always damage.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from securetm.data_classes import dataclass
from securetm.entropy import OperatingSystem
from securetm.errors import Failed, Mistake, SecuretmError, refused_as
from securetm.private_files import check_database, copy_private, make_folder, private_file, sync

# ---- the chain -----------------------------------------------------------------------------------------------------

BEGINNING = bytes(32)  # the head before the first entry
_CONTENT, _HEAD = b"securetm ledger content\n", b"securetm ledger head\n"  # labels of the two kinds of digests

Content = Mapping[str, Any]


def canonical(content: Content) -> str:
    """The canonical text of a content: JSON with sorted names and no spaces. Numbers that are not finite are refused."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def salted(content: Content) -> dict[str, Any]:
    return {**content, "salt": OperatingSystem().bytes(16).hex()}


def digest(written: bytes) -> bytes:
    return hashlib.sha256(_CONTENT + written).digest()


def extend(head: bytes, content_digest: bytes) -> bytes:
    return hashlib.sha256(_HEAD + head + content_digest).digest()


def follow(head: bytes, content_digests: Iterable[bytes]) -> bytes:
    """The head after an older head and these digests. A peer compares it with the head that it was sent."""
    for content_digest in content_digests:
        head = extend(head, content_digest)
    return head


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger, checked against the chain."""

    number: int  # from 1
    head: bytes
    content: Content


# ---- the file ------------------------------------------------------------------------------------------------------

VERSION = 2
WAIT = 60.0  # seconds for another process to finish its entry
_SQLITE = b"SQLite format 3\x00"
_NOT_NEXT = "NEW.number IS NOT (SELECT ifnull(max(number), 0) + 1 FROM entries)"
_ABORT = "BEGIN SELECT RAISE(ABORT, 'a ledger is only written at its end'); END"
_TABLES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, previous BLOB NOT NULL, content TEXT NOT NULL, head BLOB NOT NULL)",
    "CREATE TABLE witnesses (peer TEXT PRIMARY KEY, number INTEGER NOT NULL, head BLOB NOT NULL, signature BLOB NOT NULL)",
    f"CREATE TRIGGER entries_stay BEFORE DELETE ON entries {_ABORT}",
    f"CREATE TRIGGER entries_stay_as_they_are BEFORE UPDATE ON entries {_ABORT}",
    # REPLACE would remove a row without asking the trigger on DELETE
    f"CREATE TRIGGER entries_go_to_the_end BEFORE INSERT ON entries WHEN {_NOT_NEXT} {_ABORT}",
)


class LedgerRolledBack(SecuretmError):
    """{path} holds {have:entry|entries}, and not the history of {seen:entry|entries} that {who} saw"""

    path: str
    have: int
    seen: int
    who: str = "others"
    hint = (
        "it is an older copy, or was cut off or written anew: restore the copy with {seen} entries, or take the budget as spent"
    )


class LedgerFile:
    """One open file and how far its chain was checked. One thread at a time; any number of processes."""

    def __init__(self, path: Path, opened: sqlite3.Connection, *, writable: bool) -> None:
        self.path = path
        self.writable = writable
        self.number, self.head = 0, BEGINNING  # up to here the chain was checked
        self._opened = opened

    @staticmethod
    def write(path: Path, first: Content) -> LedgerFile:
        """Opens the file for new entries; creates it with its first entry if there is none."""
        if not path.exists():
            _create(path, first)
        _check_readable(path)
        check_database(path)  # others who can write it could undo spends; for reading, a file may belong to anybody
        file = LedgerFile(path, _connect(path, "mode=rw"), writable=True)
        with closed_if_refused(file):
            file._begin()
            with file._named():
                file._opened.execute("PRAGMA journal_mode=WAL")
            with file.appending(), file._named():  # a file that cannot be written is refused here, not at the first answer
                file._opened.execute(f"PRAGMA user_version = {VERSION}")
        return file

    @staticmethod
    def read(path: Path) -> LedgerFile:
        """Opens the file for reading. Nothing is created or changed in it or beside it."""
        _check_readable(path)
        file = _opened_to_read(path)
        with closed_if_refused(file):
            file._begin()
        return file

    def news(self) -> list[Entry]:
        """New entries, each checked against the chain. What was read before must still be there."""
        with self._named():
            rows = self._opened.execute(_ENTRIES, (self.number,)).fetchall()
        if self.number and (not rows or rows[0][0] != self.number or rows[0][3] != self.head):
            with self._named():
                there = int(self._opened.execute("SELECT count(*) FROM entries").fetchone()[0])
            raise LedgerRolledBack(str(self.path), there, self.number)
        found = []
        for row in rows[1 if self.number else 0 :]:
            found.append(self._checked(row))
            self.number, self.head = found[-1].number, found[-1].head
        return found

    @contextmanager
    def appending(self) -> Iterator[None]:
        """Locks the file against other writers. At the end of the block all that was appended is on disk, or nothing is."""
        if not self.writable:
            raise _unwritten(self.path, "it was opened for reading only")
        try:
            with self._named():
                self._opened.execute("BEGIN IMMEDIATE")
            yield
            with self._named():
                self._opened.execute("COMMIT")
        finally:
            if self._opened.in_transaction:
                self._opened.execute("ROLLBACK")

    def append(self, content: Content) -> None:
        """Appends an entry; only while `appending` and after `news`. The next `news` returns it."""
        with self._named():
            self._opened.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", _row(self.number, self.head, content))

    def digests(self, since: int, most: int) -> tuple[bytes, ...]:
        """The digests of the contents after that entry, at most `most`, which lead from its head to a later one."""
        with self._named():
            rows = self._opened.execute(f"{_ENTRIES} LIMIT ?", (since + 1, most)).fetchall()
        return tuple(digest(bytes(row[2])) for row in rows if row[0] <= self.number)

    def entries(self) -> Iterator[Entry]:
        with self._named():
            rows = self._opened.execute(_ENTRIES, (1,)).fetchall()
        return (Entry(row[0], row[3], json.loads(row[2])) for row in rows if row[0] <= self.number)

    def head_at(self, number: int) -> bytes | None:
        """The head after that entry, if there is one."""
        if number == 0:
            return BEGINNING
        with self._named():
            rows = self._opened.execute("SELECT head FROM entries WHERE number = ?", (number,)).fetchall()
        return bytes(rows[0][0]) if rows else None

    def keep_witnesses(self, number: int, head: bytes, signatures: Mapping[str, bytes]) -> None:
        """Stores who signed that head, and of each peer the latest signature."""
        rows = [(peer, number, head, signature) for peer, signature in sorted(signatures.items())]
        with self.appending(), self._named():
            self._opened.executemany("INSERT OR REPLACE INTO witnesses VALUES (?, ?, ?, ?)", rows)

    def witnesses(self) -> list[tuple[str, int, bytes, bytes]]:
        """Peer, number, head and signature of every countersigned head."""
        with self._named():
            return self._opened.execute("SELECT peer, number, head, signature FROM witnesses ORDER BY peer").fetchall()

    def close(self) -> None:
        self._opened.close()

    def _begin(self) -> None:
        with self._named():
            found = self._opened.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
            version = self._opened.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise _unreadable(self.path, f"a later securetm wrote it (version {version}, here {VERSION})")
        if sorted(str(row[0]) for row in found) != sorted(_TABLES):
            problem = "its tables are not those of a ledger, or the triggers that protect its entries are missing"
            raise tampered(self.path, 0, problem)

    def _checked(self, row: tuple[Any, ...]) -> Entry:
        number, previous, written, head = row
        if number != self.number + 1:
            raise tampered(self.path, self.number + 1, f"entry {self.number + 1} is missing")
        if previous != self.head:
            raise tampered(self.path, number, f"entry {number} does not follow the one before it")
        if not isinstance(written, bytes) or head != extend(self.head, digest(written)):
            raise tampered(self.path, number, f"entry {number} is not what was entered")
        try:
            return Entry(number, head, json.loads(written))
        except (ValueError, RecursionError):
            raise tampered(self.path, number, f"entry {number} cannot be read") from None

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            raise _error_for(self.path, problem) from problem


@contextmanager
def closed_if_refused(file: LedgerFile) -> Iterator[None]:
    try:
        yield
    except BaseException:
        file.close()
        raise


_ENTRIES = "SELECT number, previous, CAST(content AS BLOB), head FROM entries WHERE number >= ? ORDER BY number"


def _row(number: int, head: bytes, content: Content) -> tuple[int, bytes, str, bytes]:
    written = canonical(salted(content))
    return number + 1, head, written, extend(head, digest(written.encode()))


def _create(path: Path, first: Content) -> None:
    """Writes a complete ledger beside the path and links it there, so that no incomplete file and no overwriting can happen."""
    if path.with_name(path.name + "-wal").exists() and not path.exists():  # another process may have made both by now
        raise _damaged(path, f"the file is gone, and entries in {path.name}-wal are left of it")
    with refused_as(_unwritten, path), suppress(FileExistsError):  # if another process makes it first, that one is opened
        make_folder(path.parent)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as beside:
            _write_new(Path(beside) / path.name, first)
            os.link(Path(beside) / path.name, path)
        sync(path.parent)


def _write_new(path: Path, first: Content) -> None:
    private_file(path)  # so that SQLite's files beside it are private too
    opened = _connect(path, "mode=rwc")
    try:
        opened.execute("PRAGMA journal_mode=WAL")
        opened.execute("BEGIN")
        for table in _TABLES:
            opened.execute(table)
        opened.execute(f"PRAGMA user_version = {VERSION}")
        opened.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", _row(0, BEGINNING, first))
        opened.execute("COMMIT")
    except sqlite3.Error as problem:
        raise _error_for(path, problem) from problem
    finally:
        opened.close()  # which moves the write-ahead log into the file
    sync(path)


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise _unreadable(path, "it is a folder")
    with refused_as(_unreadable, path), path.open("rb") as stream:
        start = stream.read(len(_SQLITE))
    if start != _SQLITE:
        raise _damaged(path, "it is not a ledger" if start else "it is empty")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    opened = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", WAIT, isolation_level=None, check_same_thread=False, uri=True)
    try:
        opened.execute("PRAGMA synchronous=FULL")
        opened.execute("PRAGMA fullfsync=ON")  # on systems where a plain sync leaves data in the disk's cache
    except sqlite3.Error as problem:
        opened.close()
        raise _error_for(path, problem) from problem
    return opened


class _Copy(LedgerFile):
    """A ledger with a write-ahead log and without SQLite's index of it. SQLite would write the index, so a copy is read."""

    def __init__(self, path: Path) -> None:
        self._folder = tempfile.TemporaryDirectory()
        for name in (path.name, path.name + "-wal"):
            copy_private(path.with_name(name), Path(self._folder.name) / name)
        super().__init__(path, _connect(Path(self._folder.name) / path.name, "mode=rw"), writable=False)

    def close(self) -> None:
        super().close()
        self._folder.cleanup()


def _opened_to_read(path: Path) -> LedgerFile:
    log = path.with_name(path.name + "-wal")
    if path.with_name(path.name + "-shm").exists():  # a writer is active or was killed; SQLite reads with its index
        return LedgerFile(path, _connect(path, "mode=ro"), writable=False)
    if log.exists() and log.stat().st_size:
        return _Copy(path)
    return LedgerFile(path, _connect(path, "immutable=1"), writable=False)


_UNWRITTEN = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def _error_for(path: Path, problem: sqlite3.Error) -> SecuretmError:
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF  # the primary code
    if code == sqlite3.SQLITE_BUSY:
        held = "another process has held {path} for {seconds:g} seconds"
        return Failed(held, "wait for it, or end it; what it entered stays", path=str(path), seconds=WAIT)
    return _unwritten(path, str(problem)) if code in _UNWRITTEN else _damaged(path, str(problem))


def tampered(path: Path, entry: int, problem: str) -> Failed:
    hint = "answer nothing with it: restore the latest copy that was not changed, or take the budget as spent"
    return Failed("{path} was changed from outside: {problem}", hint, path=str(path), entry=entry, problem=problem)


def _damaged(path: Path, problem: str) -> Failed:
    hint = "restore it from a copy; without one, take the budget as spent, because nobody knows what was sent"
    return Failed("{path} cannot be read as a ledger: {problem}", hint, path=str(path), problem=problem)


def _unreadable(path: Path | str, problem: str) -> Mistake:
    hint = "give the path of the ledger's file, and check that it may be read"
    return Mistake("{path} cannot be opened as a ledger: {problem}", hint, path=str(path), problem=problem)


def _unwritten(path: Path | str, problem: str) -> Failed:
    hint = "free space on the disk or allow writing, then go on: what was entered before is safe, and nothing was sent"
    return Failed("nothing could be entered in {path}: {problem}", hint, path=str(path), problem=problem)
