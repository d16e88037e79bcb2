"""JSON lines, one object per document, also gzipped. It keeps one line in memory, never the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from securetm.corpus.building import Record
from securetm.corpus.columns import USUAL, Columns, record
from securetm.corpus.corpus_errors import EmptyFile, IncompleteColumn, InvalidJson, MissingColumn
from securetm.corpus.files import Lines, OnProgress

_SPARSE = ("label", "party", "date")  # a line may lack them, whichever it is: no line decides for another one
_STRICT = ("person", "embedding")  # every document has one, or none has: one that first comes on a later line is an error


def jsonl_records(path: Path, columns: Columns, on_progress: OnProgress | None = None) -> Iterator[Record]:
    """The documents of a .jsonl or .jsonl.gz file. Blank lines are passed over."""
    roles: dict[str, str] = {}
    for line, text in Lines(path, on_progress):
        if text.isspace():
            continue
        cells = _object(text, path, line)
        if not roles:
            roles = {role: USUAL[role][0] for role in _SPARSE} | columns.found_in(cells.keys(), path, line)
        _check(cells, roles, path, line)
        yield record({role: cells.get(column) for role, column in roles.items()}, path, line)
    if not roles:
        raise EmptyFile(str(path))


def _object(text: str, path: Path, line: int) -> dict[str, Any]:
    try:
        cells = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidJson(str(path), line) from None  # json's own error carries the whole line
    if not isinstance(cells, dict):
        raise InvalidJson(str(path), line)
    return cells


def _check(cells: dict[str, Any], roles: dict[str, str], path: Path, line: int) -> None:
    if roles["text"] not in cells:
        raise MissingColumn(str(path), line, roles["text"], "text")
    for role in _STRICT:
        if role not in roles and any(cells.get(name) is not None for name in USUAL[role]):
            raise IncompleteColumn(str(path), line, role)
