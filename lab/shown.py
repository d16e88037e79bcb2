"""The rows and curves of a bench or a reproduction, in the terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

from securetm.errors import BadSetting
from securetm.reports.charts import in_terminal
from securetm.reports.document import Curve, Document, Figure, Section, Table, items, named_curves
from securetm.reports.files import write_report
from securetm.reports.pages import in_html
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


def _measured_table(title: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> RichTable:
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


WIDEST = 100


def show_plots(result: Mapping[str, Any], to: Console) -> None:
    """Every curve of the result."""
    for figure in _figures(result):
        to.print(Text(f"{figure.y}: {figure.title}", style="bold"))
        to.print(Text(in_terminal(figure, min(to.width, WIDEST))))


def write_measured(result: Mapping[str, Any], path: Path) -> None:
    """Writes one page with the rows, the curves and what else was tried."""
    name, figures = str(result.get("reproduction", "")), _figures(result)
    if not figures:
        raise BadSetting(f"reproduce {name}", "--html", str(path), "cannot be written, because this one has nothing to draw")
    tables = (_page_table(title, rows) for title, rows in result.get("tables", {}).items() if rows)
    sections = (
        *(Section(one.title, (one,)) for one in tables),
        *(Section(one.title, (one, *items(named_curves(one)))) for one in figures),
        Section("Measured", (_page_table("Measured", result["rows"]),)),
        *([Section("Also tried", items(result["tried"]))] if result.get("tried") else []),
    )
    corpus = f"Documents: {result['corpus']}." if "corpus" in result else ""
    write_report(path, in_html(Document(name, corpus, sections)))


def _page_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows with the columns in which they differ; what is the same in every row is said below."""
    columns = [c for c in dict.fromkeys(column for row in rows for column in row) if len({str(row.get(c)) for row in rows}) > 1]
    columns = columns or list(rows[0])
    cells = tuple(tuple(_page_cell(row.get(column)) for column in columns) for row in rows)
    same = ", ".join(f"{name} {value}" for name, value in rows[0].items() if name not in columns)
    caption = f"The same in every row: {same}." if same else ""
    return Table(tuple(column.replace("_", " ") for column in columns), cells, caption, title)


def _page_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _figures(result: Mapping[str, Any]) -> list[Figure]:
    return [
        Figure(
            plot["title"], plot["x"], plot["y"], tuple(Curve(name, tuple(map(tuple, at))) for name, at in plot["lines"].items())
        )
        for plot in result.get("plots", ())
    ]
