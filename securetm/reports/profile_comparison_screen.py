"""Shows profiles side by side in the terminal, as many in a table as there is room for. It computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Column
from rich.text import Text

from securetm.reports.terminal import titled

_DIFFERS, _SAME = "≠", " "
_QUESTION, _LEAST = 18, 22  # characters for a question, and at least for an answer


def show_comparison(facts: Mapping[str, Any], to: Console) -> None:
    """One row a question; rows whose answers differ are marked. Profiles without room stand in a table below."""
    each = max((to.width - _QUESTION - 8) // (_LEAST + 3), 1)
    for first in range(0, len(facts["profiles"]), each):
        names = facts["profiles"][first : first + each]
        heads = (Column(""), Column("", width=_QUESTION, overflow="fold"), *(Column(name, overflow="fold") for name in names))
        table = titled("", *heads, show_lines=True)
        for row in facts["rows"]:
            mark = _DIFFERS if row["differs"] else _SAME
            style = "bold" if row["differs"] else ""
            table.add_row(mark, row["question"], *(Text(row["answers"][name], style=style) for name in names))
        to.print(table)
    to.print(f"{_DIFFERS}: not the same under all of them.")
