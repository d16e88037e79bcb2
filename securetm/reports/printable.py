"""Makes foreign text safe to show in a terminal.

A text from a file may hold commands to the terminal, or marks that change the direction of writing. Both are spelt out.
"""

from __future__ import annotations

import re

# both sets of control characters, marks of direction, unusual ends of lines, surrogates
_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_IN_LINES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text in one line, with every control character spelt out."""
    return _COMMANDS.sub(_spelt, text)


def without_commands(text: str) -> str:
    """The text without control characters. Ends of lines stay."""
    return _IN_LINES.sub("", text)


def _spelt(letter: re.Match[str]) -> str:
    return letter[0].encode("unicode_escape").decode("ascii")
