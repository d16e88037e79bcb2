"""Makes text that comes from documents, files or peers safe to show: each form of output has its own function here.

Such a text may hold commands to a terminal, marks that turn the direction of writing, markup, or a formula that a table
calculates when it is opened. Nobody else in the package says what these are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from html import escape

# both sets of control characters, marks of direction, unusual ends of lines, surrogates, annotations, invisible tags
_LETTERS = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f"
_COMMANDS = f"[\x00-\x1f{_LETTERS}]"  # patterns are texts, which `re` compiles when the first one is used
_IN_LINES = f"[\x00-\x09\x0b-\x1f{_LETTERS}]"
_UNESCAPED = f"[{_LETTERS}]"  # what JSON leaves as it is
# How a formula begins, also in full width, at the beginning of a cell or behind what other tables take for the end of a cell.
_FORMULA = r"(^|[;,|])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"
_MARKUP = r"([\\`*_{}\[\]<>|~#&!$])"
_LISTED = r"^([-+=]|\d+(?=[.)]))"  # what begins an item of a list, or underlines a title


def printable(text: str) -> str:
    """The text in one line, with every control character spelt out: for a terminal, a sheet of paper, an error."""
    return re.sub(_COMMANDS, _spelt, text)


def without_commands(text: str) -> str:
    """The text without control characters. Ends of lines stay."""
    return re.sub(_IN_LINES, "", text)


def visible(text: str) -> str:
    """The text with every control character spelt out. Ends of lines stay."""
    return re.sub(_IN_LINES, _spelt, text)


def html_text(text: str) -> str:
    """The text, in which nothing is markup. Ends of lines stay."""
    return escape(visible(text))


def markdown_text(text: str) -> str:
    """The text in one line, in which nothing is markup."""
    plain = printable(" ".join(text.split()).replace("\N{NO-BREAK SPACE}", " "))
    return re.sub(_LISTED, r"\\\1" if not plain[:1].isdigit() else r"\1\\", re.sub(_MARKUP, r"\\\1", plain))


def csv_cell(content: object) -> object:
    """What a cell of a CSV file holds: a number as it is, and a text in one line that no program takes for a formula.

    An apostrophe in front of it tells spreadsheets that it is a text.
    """
    if not isinstance(content, str) or _is_number(content):
        return content
    return re.sub(_FORMULA, r"\1'\2", printable(content))


def csv_text(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A whole CSV file: the names of its columns, and its lines."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([csv_cell(content) for content in line] for line in (columns, *lines))
    return text.getvalue()


def json_text(document: str) -> str:
    """A whole JSON document in which no text can command a terminal: it says the same."""
    return re.sub(_UNESCAPED, _as_escape, document)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and text == text.strip()


def _spelt(letter: re.Match[str]) -> str:
    return letter[0].encode("unicode_escape").decode("ascii")


def _as_escape(letter: re.Match[str]) -> str:
    pairs = letter[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))
