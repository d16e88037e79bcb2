"""The rows of a bench or a reproduction as tables of the terminal. This module computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from securetm.reports.terminal import titled

BENCH_COLUMNS = ("case", "ours", "unit", "peer", "theirs", "ratio", "limit", "of_limit")


def show_measurements(result: Mapping[str, Any], to: Console) -> None:
    """The rows of a bench or a reproduction; where a result names main columns, only these, and --json has all."""
    rows = result["rows"]
    known = dict.fromkeys(column for row in rows for column in row)
    main = BENCH_COLUMNS if "bench" in result else result.get("columns", known)
    columns = [column for column in known if column in main]
    to.print(_measured_table("", columns, rows))
    for title, also in result.get("tables", {}).items():
        if also:
            to.print(_measured_table(title, list(also[0]), also))
    for name, value in result.items():
        if name != "rows" and not isinstance(value, list | dict):
            to.print(f"{name}: {escape(str(value))}")
    if result.get("missing"):
        to.print(f"[yellow]not measured: {escape(', '.join(result['missing']))}[/yellow]")


def _measured_table(title: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Table:
    table = titled(title)
    for place, column in enumerate(columns):
        words = any(isinstance(row.get(column), str) for row in rows)  # numbers stay in one piece, and words give way to them
        style: dict[str, Any] = {"overflow": "fold", "min_width": 8 if place else 24} if words else {"no_wrap": True}
        table.add_column(column.replace("_", " "), justify="left" if words else "right", **style)
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else f"{value:,.3g}" if isinstance(value, float) else escape(str(value))
