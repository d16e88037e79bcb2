"""Opens text files with bounded memory, and names file and line in every error. It knows no format."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securetm.corpus.corpus_errors import DamagedFile, DocumentTooLong, EmptyFile, NulByte, WrongEncoding
from securetm.errors import NoSuchPath, Unreadable

OnProgress = Callable[[int, int], None]  # bytes read, bytes in all
MEGABYTES = 32  # of one document: a longer one means a file in another format, and memory has to be bounded
LIMIT = MEGABYTES << 20
_REPORT = 1 << 20  # bytes between two reports of progress


@dataclass(frozen=True)
class Lines:
    """The lines of a text file, decoded and numbered from 1. A file that ends in .gz is unpacked on the way."""

    path: Path
    on_progress: OnProgress | None = None

    def __iter__(self) -> Iterator[tuple[int, str]]:
        with faults_named(self.path), self.path.open("rb") as packed:
            total = size_of(self.path)
            with _unpacked(packed, self.path) as stream:
                reported = 0
                for number, line in self._lines(stream):
                    yield number, line
                    if self.on_progress and packed.tell() - reported >= _REPORT:
                        reported = packed.tell()
                        self.on_progress(reported, total)
        if self.on_progress:
            self.on_progress(total, total)

    def _lines(self, stream: io.BufferedReader) -> Iterator[tuple[int, str]]:
        number = 0
        while line := stream.readline(LIMIT + 2):
            number += 1
            if len(line) > LIMIT + 1:
                raise DocumentTooLong(str(self.path), number, MEGABYTES)
            yield number, decoded(line, self.path, number)
        if number == 0:
            raise EmptyFile(str(self.path))


def decoded(raw: bytes, path: Path, line: int) -> str:
    """The text of these bytes, which begin on that line; a byte order mark at the start of a file is dropped."""
    if b"\0" in raw:
        raise NulByte(str(path), line + raw.count(b"\n", 0, raw.index(b"\0")))
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as fault:
        raise WrongEncoding(str(path), line + raw.count(b"\n", 0, fault.start)) from None  # its own words quote the bytes


def _unpacked(packed: io.BufferedReader, path: Path) -> io.BufferedReader:
    if path.suffix != ".gz":
        return packed
    plain: Any = gzip.GzipFile(fileobj=packed)  # a raw stream in all but its type
    return io.BufferedReader(plain, 1 << 18)


def size_of(path: Path) -> int:
    """Bytes in the file."""
    with faults_named(path):
        return path.stat().st_size


@contextmanager
def faults_named(path: Path) -> Iterator[None]:
    """Turns faults of opening and unpacking into errors that name the file."""
    try:
        yield
    except FileNotFoundError as fault:
        raise NoSuchPath(str(path)) from fault
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise DamagedFile(str(path), "its compressed data stop or are wrong") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault
