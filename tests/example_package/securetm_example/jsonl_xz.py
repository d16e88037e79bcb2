"""JSON lines packed by xz, one object per document."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from securetm.corpus.building import Record
from securetm.corpus.records import (
    LIMIT,
    Columns,
    OnProgress,
    damaged_file,
    decoded,
    empty_file,
    faults_named,
    invalid_json,
    record,
)


def jsonl_xz_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a .jsonl.xz file, one line at a time; the first line decides on the columns."""
    roles: dict[str, str] = {}
    with faults_named(path), path.open("rb") as packed:
        total = path.stat().st_size
        for number, line in enumerate(_lines(path, packed), start=1):
            cells = _cells(line, path, number)
            roles = roles or columns.found_in(cells.keys(), path, number)
            yield record({role: cells.get(column) for role, column in roles.items()}, path, number)
            if on_progress is not None:
                on_progress(min(packed.tell(), total), total)
    if not roles:
        raise empty_file(str(path))


def _lines(path: Path, packed: BinaryIO) -> Iterator[bytes]:
    try:
        with lzma.LZMAFile(packed) as stream:
            while line := stream.readline(LIMIT):
                yield line
    except (lzma.LZMAError, EOFError) as fault:
        raise damaged_file(str(path), "its compressed data stop or are wrong") from fault


def _cells(line: bytes, path: Path, number: int) -> dict[str, object]:
    try:
        cells = json.loads(decoded(line, path, number))
    except (ValueError, RecursionError):
        raise invalid_json(str(path), number) from None
    if not isinstance(cells, dict):
        raise invalid_json(str(path), number)
    return cells
