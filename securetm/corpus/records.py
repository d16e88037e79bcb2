"""Documents as readers find them: lines of files, the role of each column, and checks of cells, whose errors quote none."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.data_classes import dataclass
from securetm.errors import Mistake, NoSuchPath, Unreadable

OnProgress = Callable[[int, int], None]  # bytes read, bytes in all
MEGABYTES = 32  # of one document: a longer one means a file in another format, and memory has to be bounded
LIMIT = MEGABYTES << 20
_REPORT = 1 << 20  # bytes between two reports of progress


def numbered_lines(path: Path, on_progress: OnProgress | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a text file, decoded and numbered from 1. A file that ends in .gz is unpacked on the way."""
    reported = number = 0
    with faults_named(path), path.open("rb") as packed:
        total, plain = size_of(path), packed
        if path.suffix == ".gz":
            plain = io.BufferedReader(gzip.GzipFile(fileobj=packed), 1 << 18)
        while line := plain.readline(LIMIT + 2):
            number += 1
            if len(line) > LIMIT + 1:
                raise document_too_long(path, number)
            yield number, decoded(line, path, number)
            if on_progress and packed.tell() - reported >= _REPORT:
                reported = packed.tell()
                on_progress(reported, total)
        if number == 0:
            raise empty_file(path)
    if on_progress:
        on_progress(total, total)


def decoded(raw: bytes, path: Path, line: int, *, is_row: bool = False) -> str:
    """The text of these bytes, which begin on that line; a byte order mark at the start of a file is dropped.

    In errors, a row of a table has one number, however many lines it holds.
    """
    if b"\0" in raw:
        raise _nul_byte(path, line + (0 if is_row else raw.count(b"\n", 0, raw.index(b"\0"))))
    try:
        return raw.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as fault:  # its own words quote the bytes
        raise wrong_encoding(path, line + (0 if is_row else raw.count(b"\n", 0, fault.start))) from None


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
        raise damaged_file(path, "its compressed data stop or are wrong") from fault
    except OSError as fault:
        raise Unreadable(str(path), fault.strerror or type(fault).__name__) from fault


NAMES = ("label", "party", "date", "person", "id")  # the roles whose cells are names
ROLES = ("text", *NAMES, "embedding")
USUAL: Mapping[str, tuple[str, ...]] = {  # ids are asked for
    **{role: (role,) for role in ROLES},
    "embedding": ("embedding", "embeddings"),
    "id": (),
}
USUAL_IN_PARQUET: Mapping[str, tuple[str, ...]] = {**USUAL, "text": ("bow_text", "text"), "label": ("fos", "label")}


@dataclass(slots=True)
class Record:
    """One document as a reader found it. `line` is where, for an error."""

    text: str
    line: int = 0
    label: str | None = None
    party: str | None = None
    date: str | None = None
    person: str | None = None
    embedding: Array | None = None
    id: str | None = None
    source: str = ""  # the file, where documents come from several


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
                raise missing_column(path, line, asked or usual[role][-1], role)
        return found


def check_names(names: Sequence[str], path: Path, line: int) -> None:
    """Refuses two columns of one name."""
    for second, name in enumerate(names):
        if (first := names.index(name)) != second:
            raise bad_table(path, line, f"columns {first + 1} and {second + 1} have the same name")


def record(cells: Mapping[str, Any], path: Path, line: int) -> Record:
    """One document from its cells by role, each checked."""
    names: dict[str, Any] = {role: _name(cells.get(role), role, path, line) for role in NAMES}
    return Record(_text(cells.get("text"), path, line), line, embedding=_embedding(cells.get("embedding"), path, line), **names)


def _text(cell: Any, path: Path, line: int) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        raise bad_cell(path, line, "text", f"is of type {type(cell).__name__}, not a string")
    if "\0" in cell:
        raise _nul_byte(path, line)
    return cell


def _name(cell: Any, role: str, path: Path, line: int) -> str | None:
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, (list, dict)):
        raise bad_cell(path, line, role, f"is of type {type(cell).__name__}, not a name or a number")
    name = str(cell)
    if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise bad_cell(path, line, role, "holds a character that is not text")
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
        raise bad_cell(path, line, "embedding", "is not a list of numbers") from None  # its own words quote the cell
    if vector.ndim != 1 or not len(vector):
        raise bad_cell(path, line, "embedding", "is not a list of numbers")
    if not np.isfinite(vector).all():
        raise bad_cell(path, line, "embedding", "holds a number that is not finite")
    return vector


_NOT_NUMBERS = str.maketrans("[](),;", "      ")


# ---- what is wrong with a file, and in which line --------------------------------------------------------------------


def at_line(path: Path | str, line: int, sentence: str, hint: str, **facts: Any) -> Mistake:
    """A mistake in a line of a file, or in a row where a file has no lines."""
    place = "row" if str(path).endswith(".parquet") else "line"
    return Mistake(f"{{path}}, {place} {{line}}: {sentence}", hint=hint, path=str(path), line=line, **facts)


def missing_column(path: Path | str, line: int, column: str, role: str = "text") -> Mistake:
    """A file without the column of a role."""
    hint = (
        "name the column that holds the {role}: --{role} COLUMN (in a plan {role} of [corpus], in Python {role}=); the first "
        "line of a table holds the names of its columns"
    )
    return at_line(path, line, "there is no column called {column!r}", hint, column=column, role=role)


def missing_text(path: Path | str, line: int, column: str) -> Mistake:
    """A line without the text that the lines before it have."""
    hint = 'give that line its {column} (of an empty document ""), or take the line out'
    return at_line(path, line, "this line has no {column!r}, and the first one has it", hint, column=column)


def incomplete_column(path: Path | str, line: int, column: str, *, given: bool) -> Mistake:
    """A document that has what the first one has not, or the other way round, where all have it or none."""
    hint = "give every document {one}, or none, or name another column: --{column} COLUMN"
    facts = {"column": column, "one": f"an {column}" if column[0] in "aei" else f"a {column}"}
    if given:
        return at_line(path, line, "this document has {one}, and the first one has none", hint, **facts)
    return at_line(path, line, "this document has no {column}, and the first one has one", hint, **facts)


def bad_cell(path: Path | str, line: int, column: str, problem: str) -> Mistake:
    """A cell that is not what its column holds."""
    hint = "correct that line, or name another column: --{column} COLUMN (in a plan {column} of [corpus], in Python {column}=)"
    return at_line(path, line, "the {column} {problem}", hint, column=column, problem=problem)


def bad_table(path: Path | str, line: int, problem: str) -> Mistake:
    """A table whose rows cannot be told."""
    hint = (
        "put cells that hold the delimiter, a double quote or a line break between double quotes, double each quote inside it, "
        "and end rows with LF or CRLF; the first line of a table holds the names of its columns, each once"
    )
    return at_line(path, line, "{problem}", hint, problem=problem)


def wrong_encoding(path: Path | str, line: int) -> Mistake:
    """Bytes that are no UTF-8."""
    return at_line(path, line, "this is not UTF-8", "convert the file first: iconv -f latin1 -t utf-8 OLD > NEW")


def document_too_long(path: Path | str, line: int) -> Mistake:
    """More than memory is bounded for."""
    hint = "split it: one document per line, and a document is at most {megabytes} MB"
    return at_line(path, line, "one document is longer than {megabytes} MB", hint, megabytes=MEGABYTES)


def invalid_json(path: Path | str, line: int) -> Mistake:
    """A line that is no object."""
    hint = 'JSONL is one object per line, such as {{"text": "..."}}; a file that is one JSON array must be rewritten'
    return at_line(path, line, "this is not a JSON object", hint)


def _nul_byte(path: Path | str, line: int) -> Mistake:
    hint = "is it a text file, and UTF-8 rather than UTF-16? remove NUL bytes with: tr -d '\\000' < OLD > NEW"
    return at_line(path, line, "there is a NUL byte in the text", hint)


def empty_file(path: Path | str) -> Mistake:
    """A file without a document."""
    return Mistake("{path} is empty", hint="one document per line or row is needed", path=str(path))


def damaged_file(path: Path | str, problem: str) -> Mistake:
    """A file that is not as it was written."""
    hint = "copy or download it again; compare its size with the original's"
    return Mistake("{path} is damaged or was cut short: {problem}", hint=hint, path=str(path), problem=problem)


# ---- documents that were read and are in no corpus; these figures stay with a party ------------------------------------

NO_TEXT = "without text"
NO_WORD = "without a word that the tokeniser keeps"
NOT_AGREED = "without an agreed word"


@dataclass(frozen=True)
class Dropped:
    """Documents that were read and are in no corpus: the reason, their number, and their columns."""

    reason: str
    documents: int
    party: str = ""
    label: str = ""
    date: str = ""


def counted(dropped: Iterable[Dropped], *, named: bool = False) -> list[dict[str, Any]]:
    """Documents by reason; with `named` also by the party that they name."""
    several: Counter[tuple[str, str]] = Counter()
    for one in dropped:
        several[one.reason, one.party if named else ""] += one.documents
    return [
        {"reason": reason, "documents": documents} | ({"party": party} if party else {})
        for (reason, party), documents in sorted(several.items())
    ]
