"""What a terminal may be shown of a foreign text. It knows nothing of what the text says.

A text from a file may hold commands to the terminal, or letters that turn the order of others around: they are spelt out.
"""

from __future__ import annotations

import re

# controls of both sets, marks that change the direction of writing, ends of lines beside the usual one, halves of letters
_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_IN_LINES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text in one line, with everything spelt out that would not be shown but obeyed."""
    return _COMMANDS.sub(_spelt, text)


def without_commands(text: str) -> str:
    """The same text as wide as it was and in as many lines, without what would be obeyed."""
    return _IN_LINES.sub("", text)


def _spelt(letter: re.Match[str]) -> str:
    return letter[0].encode("unicode_escape").decode("ascii")
