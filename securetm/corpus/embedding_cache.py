"""Embeddings on disk, by the digest of their text. It knows no model and computes nothing.

An embedding tells what a text is about, so the file is for its owner alone. It may be deleted at any time: what is missing or
damaged is computed again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import numpy as np

from securetm.contracts import Array
from securetm.private_files import check_database, private_file, private_folder
from securetm.resources import user_cache

KEPT_AS = np.dtype("<f2")
_WAIT = 30.0  # seconds for another process that writes
_CHECK = 8  # bytes of a row's checksum
_TABLE = "CREATE TABLE IF NOT EXISTS embeddings (text BLOB PRIMARY KEY, numbers BLOB NOT NULL) WITHOUT ROWID"


def cache_folder() -> Path:
    """The folder of all embeddings that this user's processes keep."""
    return user_cache() / "embeddings"


class EmbeddingCache:
    """The embeddings of one model, in one file."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size

    def found(self, texts: Sequence[bytes]) -> dict[bytes, Array]:
        """The embeddings that are kept and whole, by the digest of the text."""
        found: dict[bytes, Array] = {}

        def look_up(opened: sqlite3.Connection) -> None:
            for text in texts:
                kept = opened.execute("SELECT CAST(numbers AS BLOB) FROM embeddings WHERE text = ?", (text,)).fetchone()
                if kept is not None and (numbers := self._read(text, kept[0])) is not None:
                    found[text] = numbers

        self._carried_out(look_up)
        return found

    def keep(self, texts: Sequence[bytes], numbers: Array) -> None:
        """Keeps these embeddings, all or none of them. Where that fails, they are computed again next time."""
        rows = [(text, _written(text, row)) for text, row in zip(texts, numbers, strict=True)]
        self._carried_out(lambda opened: opened.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", rows))

    def _read(self, text: bytes, kept: bytes) -> Array | None:
        check, numbers = kept[:_CHECK], kept[_CHECK:]
        whole = len(numbers) == self._size * KEPT_AS.itemsize and check == _checksum(text, numbers)
        return np.frombuffer(numbers, KEPT_AS).astype(np.float32) if whole else None

    def _carried_out(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Works with the file, made where there is none. What is no database is thrown away; without room nothing is kept."""
        try:
            private_folder(self._path.parent)
            private_file(self._path)
            check_database(self._path)
            with closing(sqlite3.connect(self._path, timeout=_WAIT)) as opened, opened:
                opened.execute(_TABLE)
                work(opened)
        except (OSError, sqlite3.OperationalError):
            return  # no such place, busy, or full
        except sqlite3.DatabaseError:
            with suppress(OSError):
                self._path.unlink()


def _written(text: bytes, numbers: Array) -> bytes:
    kept = numbers.astype(KEPT_AS).tobytes()
    return _checksum(text, kept) + kept


def _checksum(text: bytes, numbers: bytes) -> bytes:
    return hashlib.blake2b(text + numbers, digest_size=_CHECK).digest()
