"""What binds a sheet, the statement that it shows and its annex to each other: marks in the files themselves, and the check.

A sheet names the digest of the statement, of each file that it speaks of, and its own. A page of an annex names the statement.
So a signature under the sheet covers all of them, and a sheet that is put on another annex does not fit it. Whoever changes a
sheet can compute its own digest anew: only a signature says who stood behind it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from rich.console import Console

from securetm.credentials.report_signatures import ENDING
from securetm.data_classes import dataclass, field
from securetm.errors import Mistake, NoSuchPath
from securetm.federation.release import MODEL, RELEASE, TOPICS

STATEMENT = "statement"  # the sheets in `release/`, and the end of the name of the statement's file elsewhere
HTML, PDF, MARKDOWN = ".html", ".pdf", ".md"
_STATEMENT, _SHEET, _FILE, _ANNEX = "securetm-statement:", "securetm-sheet:", "securetm-file:", "securetm-annex-of:"
_BLANK = "0" * 64
_SHOWN = 16  # digits of a digest that tell two statements apart for people
_PLACES = (  # where marks stand: at the end of a page or a text, or among the keywords of a PDF. Names cannot write into either
    re.compile(rb"^<!-- (securetm-[^<>]*) -->$", re.MULTILINE),
    re.compile(rb"/Keywords\s*\((securetm-[^()\\]*)\)"),
)
_DIGEST = "[0-9a-f]{64}"


@dataclass(frozen=True)
class Marks:
    """What a file of ours says of itself."""

    statement: str = ""  # of a sheet: the digest of the statement that it shows
    own: str = ""  # of a sheet: its own digest, with blanks in the place of the digest
    files: Mapping[str, str] = field(default_factory=dict)  # that a sheet speaks of: SHA-256 by name
    annex_of: str = ""  # of a page of an annex


def sheet_marks(statement: str, files: Mapping[str, str]) -> tuple[str, ...]:
    """The marks of a sheet, before `sealed`."""
    return (
        f"{_STATEMENT}{statement}",
        f"{_SHEET}{_BLANK}",
        *(f"{_FILE}{digest} {quote(name, safe='')}" for name, digest in files.items()),
    )


def annex_marks(statement: str) -> tuple[str, ...]:
    return (f"{_ANNEX}{statement}",)


def shown_digest(digest: str) -> str:
    """So much of a digest as people compare."""
    return " ".join(re.findall("....", digest[:_SHOWN]))


def sealed(content: bytes) -> bytes:
    """The sheet with its own digest in it."""
    return content.replace(_own(_BLANK), _own(hashlib.sha256(content).hexdigest()))


def is_as_sealed(content: bytes, own: str) -> bool:
    """Whether the sheet is as it was when its digest was put in."""
    return hashlib.sha256(content.replace(_own(own), _own(_BLANK))).hexdigest() == own


def read_marks(content: bytes) -> Marks | None:
    """The marks of a file; None where it has none."""
    found = [place for pattern in _PLACES for place in pattern.findall(content)]
    if len(found) != 1:
        return None
    said = found[0].decode("ascii", "replace")
    files = {unquote(name): digest for digest, name in re.findall(rf"{_FILE}({_DIGEST}) ([^\s,]+)", said)}
    return Marks(_first(_STATEMENT, said), _first(_SHEET, said), files, _first(_ANNEX, said))


def _own(digest: str) -> bytes:
    return f"{_SHEET}{digest}".encode("ascii")


def _first(mark: str, said: str) -> str:
    found = re.search(rf"{mark}({_DIGEST})", said)
    return found[1] if found else ""


# ---- the check: it changes nothing -----------------------------------------------------------------------------------
# In a folder `release/` everything must be there, and nothing else. A sheet elsewhere may stand without the released files:
# what is not there is said, and compared with nothing.

_IN_RELEASE = f"{STATEMENT}.json"
_ANNEX_PAGE = ".annex"  # in the names of pages that carry the statement's mark


@dataclass(frozen=True)
class Compared:
    """What came out: the statement's digest, files that are as they were, changes in words, and files that are not here."""

    statement: str
    same: tuple[str, ...]
    changed: tuple[str, ...]
    absent: tuple[str, ...]


def compare_statement(place: Path) -> Compared:
    """Compares one sheet, or all sheets in the folder of a run or in its `release/`."""
    if not place.exists():
        raise NoSuchPath(str(place))
    if not place.is_dir():
        return _of_sheet(place)
    folder = place / RELEASE if (place / RELEASE).is_dir() else place
    sheets = [folder / f"{STATEMENT}{form}" for form in (HTML, MARKDOWN, PDF)]
    found = [_of_sheet(one) for one in sheets if one.is_file()]
    if not found:
        raise _no_statement(folder, "it holds no statement")
    known = {_IN_RELEASE, MODEL, TOPICS, *(one.name for one in sheets), *(one.name + ENDING for one in sheets)}
    more = [
        f"{one.name} is none of the files that the statement speaks of" for one in folder.iterdir() if one.name not in known
    ]
    missing = [f"{one.name} is not here" for one in sheets if not one.is_file() and one.suffix != PDF]
    several = ["the sheets show different statements"] if len({one.statement for one in found}) > 1 else []
    changed = dict.fromkeys([*several, *missing, *more, *(text for one in found for text in one.changed)])
    same = dict.fromkeys(name for one in found for name in one.same)
    return Compared(found[0].statement, tuple(same), tuple(changed), ())


def _no_statement(path: Path, problem: str) -> Mistake:
    hint = "give a sheet that `securetm report RUN` wrote, the folder `release` of a run, or the run's folder"
    return Mistake("{path} is no statement on a run: {problem}", hint=hint, path=str(path), problem=problem)


def _of_sheet(path: Path) -> Compared:
    content = path.read_bytes()
    marks = read_marks(content)
    if marks is None or not marks.statement:
        raise _no_statement(path, "it names no statement and no file that belongs to it")
    strict = _IN_RELEASE in marks.files
    same, changed, absent = list[str](), list[str](), list[str]()
    if is_as_sealed(content, marks.own):
        same.append(path.name)
    else:
        changed.append(f"{path.name} was changed after it was written")
    for name, digest in marks.files.items():
        beside = path.with_name(Path(name).name)
        if not beside.is_file():
            missing = strict or name not in (MODEL, TOPICS)
            (changed if missing else absent).append(f"{name} is not here" if missing else name)
        elif sha256_of(beside) != digest:
            changed.append(f"{name} is not the file that {path.name} speaks of: its SHA-256 is another one")
        else:
            same.append(name)
    changed += _at_odds(path, marks)
    return Compared(marks.statement, tuple(same), tuple(changed), tuple(absent))


def _at_odds(path: Path, marks: Marks) -> Iterator[str]:
    """Where the sheet, the statement and the annex contradict each other, though each is whole."""
    statement = next((name for name, digest in marks.files.items() if digest == marks.statement), "")
    if not statement:
        yield f"{path.name} speaks of no file that is its statement"
    elif (facts := path.with_name(Path(statement).name)).is_file() and sha256_of(facts) == marks.statement:
        released = json.loads(facts.read_bytes())["files"]
        yield from (
            f"{path.name} and {statement} name different files {name}"
            for name in released
            if released[name] != marks.files.get(name)
        )
    for name in marks.files:
        page = path.with_name(Path(name).name)
        if _ANNEX_PAGE in name and page.is_file():
            of = read_marks(page.read_bytes())
            if of is None or of.annex_of != marks.statement:
                yield f"{name} is the annex of another statement"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file; empty where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def show_compared(found: Compared, to: Console) -> None:
    for text in found.changed:
        to.print(f"CHANGED: {text}", markup=False, highlight=False)
    if found.same:
        to.print(f"As they were: {', '.join(found.same)}.", markup=False, highlight=False)
    if found.absent:
        to.print(f"Not here, so compared with nothing: {', '.join(found.absent)}.", markup=False, highlight=False)
    to.print(f"The statement: {shown_digest(found.statement)}", markup=False, highlight=False)
