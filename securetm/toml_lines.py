"""Finds the line of each key of a TOML file. It reads text that `tomllib` has accepted, and decides nothing about values.

It runs only when a mistake is reported: `tomllib` gives the content of a file without the places.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress

KeyPath = tuple[str | int, ...]  # names of tables and keys; numbers count the entries of arrays from 0
_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_TEXT = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.S)
_OTHER = re.compile(r"[^,\]}#\n]+")  # a number, a truth value or a date


def lines_of(text: str) -> Mapping[KeyPath, int]:
    """The line on which each key stands first, counted from 1. Of a text that is no TOML, the lines up to its fault."""
    scanner = _Scanner(text)
    with suppress(ValueError, LookupError, RecursionError):
        scanner.document()
    return scanner.lines


class _Scanner:
    """Goes through the text once. The text is valid TOML, so it skips what it need not understand."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._text, self._at = text, 0
        self._entries: dict[KeyPath, int] = {}  # how many entries of each array of tables were seen
        self._counted = (0, 1)  # a position, and the line that it is on

    def document(self) -> None:
        table: KeyPath = ()
        while self._skip_blank():
            if self._next("["):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> KeyPath:
        """Reads `name]` or `[name]]`, and returns the path of the table that begins there."""
        several, here, path = self._next("["), self._line(), KeyPath(self._key())
        path = self._inside_entries(path[:-1]) + path[-1:] if several else self._inside_entries(path)
        self._note(path, here)
        if several:
            self._entries[path] = self._entries.get(path, -1) + 1
            path = (*path, self._entries[path])
            self._note(path, here)
        self._at += 2 if several else 1
        return path

    def _inside_entries(self, path: KeyPath) -> KeyPath:
        """The path with the number of the last entry behind each array of tables that it goes through."""
        whole: KeyPath = ()
        for name in path:
            whole = (*whole, name)
            if whole in self._entries:
                whole = (*whole, self._entries[whole])
        return whole

    def _pair(self, table: KeyPath) -> None:
        here, path = self._line(), (*table, *self._key())
        self._note(path, here)
        self._skip_blank()
        self._expect("=")
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip_blank()
        if self._next("{"):
            for _ in self._items("}"):
                self._pair(path)
        elif self._next("["):
            for number in self._items("]"):
                self._note((*path, number), self._line())
                self._value((*path, number))
        else:
            self._match(_TEXT if self._text[self._at] in "\"'" else _OTHER)

    def _items(self, end: str) -> Iterator[int]:
        """Counts the items of an array or inline table; the caller reads each."""
        number = 0
        while self._skip_blank() and not self._next(end):
            yield number
            number += 1
            self._skip_blank()
            self._next(",")

    def _key(self) -> tuple[str, ...]:
        self._skip_blank()
        content, names = tomllib.loads(f"{self._match(_KEY)} = 0"), []
        while isinstance(content, dict):
            ((name, content),) = content.items()
            names.append(name)
        self._skip_blank()
        return tuple(names)

    def _note(self, path: KeyPath, line: int) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _line(self) -> int:
        self._skip_blank()
        before, line = self._counted
        self._counted = (self._at, line + self._text.count("\n", before, self._at))
        return self._counted[1]

    def _skip_blank(self) -> bool:
        """Goes to the next sign that is no space and in no comment; whether there is one."""
        self._match(_BLANK)
        return self._at < len(self._text)

    def _next(self, sign: str) -> bool:
        """Whether this sign comes next; if so it is read."""
        found = self._text.startswith(sign, self._at)
        self._at += len(sign) if found else 0
        return found

    def _expect(self, sign: str) -> None:
        if not self._next(sign):
            raise ValueError(sign)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(pattern.pattern)
        self._at = found.end()
        return found[0]
