"""The marks by which a sheet, the statement that it shows and its annex are bound to each other: lines in the file itself.

A sheet names the digest of the statement, of each file that it speaks of, and its own. A page of an annex names the statement.
So a signature under the sheet covers all of them, and a sheet that is put on another annex does not fit it. Whoever changes a
sheet can compute its own digest anew: only a signature says who stood behind it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

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
    """The marks of a page of an annex."""
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
