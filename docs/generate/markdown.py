"""Tables and lists in Markdown, of texts that may hold any sign. It knows nothing of what it writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """A text that stays inside its cell of a table."""
    return " ".join(re.split(r"[ \t\n]+", str(text).replace("|", "\\|").strip(" \t\n")))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, or nothing where it would have no row."""
    lines = [f"| {' | '.join(cell(part) for part in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *lines])


def listed(lines: Iterable[str]) -> str:
    """A list of points."""
    return "\n".join(f"- {line}" for line in lines)


def page(*parts: str) -> str:
    """Parts with a blank line between them; what is empty is left out."""
    return "\n\n".join(part for part in parts if part) + "\n"


def code(text: object) -> str:
    """As it would be typed."""
    return f"`{text}`" if str(text) else ""
