"""The role of each column of a file, and checks of its cells. It opens no file, and its errors quote no cell."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.building import Record
from securetm.corpus.corpus_errors import BadCell, BadTable, MissingColumn, NulByte

NAMES = ("label", "party", "date", "person", "id")  # the roles whose cells are names
ROLES = ("text", *NAMES, "embedding")
_OWN_NAME = {role: (role,) for role in ROLES}
USUAL: Mapping[str, tuple[str, ...]] = {**_OWN_NAME, "embedding": ("embedding", "embeddings"), "id": ()}  # ids are asked for
USUAL_IN_PARQUET: Mapping[str, tuple[str, ...]] = {**USUAL, "text": ("bow_text", "text"), "label": ("fos", "label")}


@dataclass(frozen=True)
class Columns:
    """The name of each role's column; None stands for its usual name, where the file has one."""

    text: str | None = None
    label: str | None = None
    party: str | None = None
    date: str | None = None
    person: str | None = None
    embedding: str | None = None
    id: str | None = None

    def found_in(
        self, names: Collection[str], path: Path, line: int, usual: Mapping[str, tuple[str, ...]] = USUAL
    ) -> dict[str, str]:
        """Role -> column. A column that was asked for, and the text, must be there."""
        found: dict[str, str] = {}
        for role in ROLES:
            asked = getattr(self, role)
            present = [name for name in ((asked,) if asked else usual[role]) if name in names]
            if present:
                found[role] = present[0]
            elif asked or role == "text":
                raise MissingColumn(str(path), line, asked or usual[role][-1], role)
        return found


def check_names(names: Sequence[str], path: Path, line: int) -> None:
    """Refuses two columns of one name."""
    for second, name in enumerate(names):
        if (first := names.index(name)) != second:
            raise BadTable(str(path), line, f"columns {first + 1} and {second + 1} have the same name")


def record(cells: Mapping[str, Any], path: Path, line: int) -> Record:
    """One document from its cells by role, each checked."""
    names: dict[str, Any] = {role: _name(cells.get(role), role, path, line) for role in NAMES}
    return Record(_text(cells.get("text"), path, line), line, embedding=_embedding(cells.get("embedding"), path, line), **names)


def _text(cell: Any, path: Path, line: int) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise BadCell(str(path), line, "text", f"is of type {type(cell).__name__}, not a string")
    if "\0" in cell:
        raise NulByte(str(path), line)
    return cell


def _name(cell: Any, role: str, path: Path, line: int) -> str | None:
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, (list, dict)):
        raise BadCell(str(path), line, role, f"is of type {type(cell).__name__}, not a name or a number")
    name = str(cell)
    if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise BadCell(str(path), line, role, "holds a character that is not text")
    return name


def _embedding(cell: Any, path: Path, line: int) -> Array | None:
    """Numbers, or a string of numbers between blanks or commas with any brackets around them."""
    if cell is None:
        return None
    numbers: Iterable[Any] = cell
    if isinstance(cell, str):
        numbers = cell.translate(_NOT_NUMBERS).split()
    try:
        vector = np.asarray(numbers, dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise BadCell(str(path), line, "embedding", "is not a list of numbers") from None  # its own words quote the cell
    if vector.ndim != 1 or not len(vector):
        raise BadCell(str(path), line, "embedding", "is not a list of numbers")
    if not np.isfinite(vector).all():
        raise BadCell(str(path), line, "embedding", "holds a number that is not finite")
    return vector


_NOT_NUMBERS = str.maketrans("[](),;", "      ")
