"""A reproduction's curves, in the terminal and on a page of their own. This module computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from securetm.accounting.calculator.budget_report import Plot, PlotLine, ReportTable
from securetm.errors import BadSetting
from securetm.foreign_text import html_text
from securetm.reports.page import figure_section, framed, table_section
from securetm.reports.plots import in_terminal
from securetm.reports.writing import write_report

WIDEST = 100


def show_plots(result: Mapping[str, Any], to: Console) -> None:
    """Every curve of the result."""
    for plot in _plots(result):
        to.print(Text(f"{plot.y}: {plot.title}", style="bold"))
        to.print(Text(in_terminal(plot, min(to.width, WIDEST))))


def write_measured(result: Mapping[str, Any], path: Path) -> None:
    """Writes one page with the rows, the curves and what else was tried."""
    name = str(result.get("reproduction", ""))
    plots = _plots(result)
    if not plots:
        raise BadSetting(f"reproduce {name}", "--html", str(path), "cannot be written, because this one has nothing to draw")
    tables = [_table(title, rows) for title, rows in result.get("tables", {}).items() if rows]
    tried = "".join(f"<li>{html_text(sentence)}</li>" for sentence in result.get("tried", ()))
    corpus = f"<p>Documents: {html_text(str(result['corpus']))}.</p>" if "corpus" in result else ""
    parts = [f"<h1>{html_text(name)}</h1>{corpus}", *map(table_section, tables), *map(figure_section, plots)]
    parts += [table_section(_table("Measured", result["rows"]))]
    also = f"<section><h2>Also tried</h2><ul>{tried}</ul></section>" if tried else ""
    write_report(path, framed(name, [*parts, also]))


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> ReportTable:
    """Rows with the columns in which they differ; what is the same in every row is said below."""
    columns = [c for c in dict.fromkeys(column for row in rows for column in row) if len({str(row.get(c)) for row in rows}) > 1]
    columns = columns or list(rows[0])
    cells = tuple(tuple(_cell(row.get(column)) for column in columns) for row in rows)
    same = ", ".join(f"{name} {value}" for name, value in rows[0].items() if name not in columns)
    caption = f"The same in every row: {same}." if same else ""
    return ReportTable(title, tuple(column.replace("_", " ") for column in columns), cells, caption)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _plots(result: Mapping[str, Any]) -> list[Plot]:
    return [
        Plot(
            plot["title"],
            plot["x"],
            plot["y"],
            tuple(PlotLine(name, tuple(map(tuple, at))) for name, at in plot["lines"].items()),
        )
        for plot in result.get("plots", ())
    ]
