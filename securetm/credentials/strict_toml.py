"""TOML files that come from others, such as rosters: read within limits of size and depth, and written without escapes.

`tomllib` works for minutes on a hostile file of some megabytes, so what no honest file has is refused before it reads.
"""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import Any, TypeVar

from securetm.errors import Mistake
from securetm.settings import file_bytes, from_table, parsed_toml, require

T = TypeVar("T")
_MOST_LINES = 100_000
_LONGEST_LINE = 1_000
_LINE = 512  # letters of base64 in one line: a roster of 2,000 members has fewer lines than may be
_MOST_DOTS = 32  # in one line: the time for a dotted key grows with the square of its parts
_MOST_BRACKETS = 8
_MOST_NAMES = 20  # in one table


def read_limited(path: Path, longest: int) -> dict[str, Any]:
    """The tables of a TOML file of at most so many bytes."""
    return parsed_limited(str(path), bytes_of(path, longest))


def parsed_limited(path: str, content: bytes) -> dict[str, Any]:
    """The tables in these bytes. `path` is what errors call them."""
    lines = content.decode("utf-8", "replace").splitlines()
    if len(lines) > _MOST_LINES:
        raise _not_read(path, f"it has more than {_MOST_LINES:,} lines")
    for number, line in enumerate(lines, start=1):
        opened = line.count("[") + line.count("{")
        if len(line) > _LONGEST_LINE or line.count(".") > _MOST_DOTS or opened > _MOST_BRACKETS:
            raise _not_read(path, f"line {number} is longer or deeper than any that belongs there")
    return parsed_toml(content, path)


def table_of(cls: type[T], table: dict[str, Any], where: str) -> T:
    """The settings of one table. One with far more names than it can have is refused without naming each."""
    require(len(table) <= _MOST_NAMES, where, "settings", f"{len(table):,} names", f"must have at most {_MOST_NAMES}")
    return from_table(cls, table, where)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def hexadecimal(text: str, length: int, where: str, setting: str) -> bytes:
    """The bytes that a text of so many pairs of hexadecimal digits stands for."""
    is_hex = len(text) == 2 * length and all(letter in "0123456789abcdef" for letter in text)
    require(is_hex, where, setting, text[:100], f"must be {2 * length} digits of 0-9 and a-f")
    return bytes.fromhex(text)


def encoded(content: bytes) -> str:
    """Bytes as TOML writes many of them: base64 in lines."""
    text = base64.b64encode(content).decode()
    return "'''\n" + "".join(text[at : at + _LINE] + "\n" for at in range(0, len(text), _LINE)) + "'''"


def decoded(text: str, length: int, where: str, setting: str) -> bytes:
    """The bytes that lines of base64 stand for, if they are so many and are written as `encoded` writes them."""
    try:
        found = base64.b64decode(text.replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    is_it = len(found) == length and text == encoded(found)[4:-3]
    require(is_it, where, setting, text.strip()[:100], f"must be {length:,} bytes in base64, {_LINE} letters a line")
    return found


def bytes_of(path: Path, longest: int) -> bytes:
    content = file_bytes(path, longest + 1)
    if len(content) > longest:
        raise _not_read(str(path), f"it is longer than {longest:,} bytes")
    return content


def _not_read(path: str, problem: str) -> Mistake:
    return Mistake(
        "{path} is not read: {problem}", hint="ask the coordinator's operator for the file again", path=path, problem=problem
    )
