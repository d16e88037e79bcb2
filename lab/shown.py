"""The rows and curves of a bench or a reproduction as a document, in the terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from securetm.errors import BadSetting
from securetm.figures import Curve, Figure
from securetm.reports.charts import in_terminal
from securetm.reports.document import Document, Items, Paragraph, Section, Table, items, named_curves
from securetm.reports.files import write_report
from securetm.reports.pages import in_html
from securetm.reports.terminal import show

BENCH_COLUMNS = ("case", "ours", "unit", "peer", "theirs", "ratio", "limit", "of_limit")
WIDEST = 100
_EDGES, _OF_WORDS = 3, 20  # beside what stands in a column; the room of a column of words
Rows = Sequence[Mapping[str, Any]]


def show_measured(result: Mapping[str, Any], to: Console) -> None:
    """Rows, tables, facts, claims and curves. Of a paper the tables stand for the rows; --json has all."""
    known = dict.fromkeys(column for row in result["rows"] for column in row)
    main = BENCH_COLUMNS if "bench" in result else result.get("columns", known)
    rows = [] if "claims" in result else [_table("", result["rows"], [column for column in known if column in main])]
    tables = [*rows, *_tables(result)]
    show([piece for table in tables for piece in _pieces(table, to.width)], to)
    facts = {name: value for name, value in result.items() if name != "rows" and not isinstance(value, list | dict)}
    show([Paragraph(f"{name}: {value}") for name, value in facts.items()], to)
    if result.get("missing"):
        show([Paragraph(f"not measured: {', '.join(result['missing'])}", "warning")], to)
    for claim in result.get("claims", ()):
        lines = (f"theirs: {claim['theirs']}", f"ours: {claim['ours']}", claim["why"])
        show((Paragraph(f"{claim['claim']}: {claim['verdict']}", "strong"), Items(lines)), to)
    for figure in _figures(result):
        to.print(Text(f"{figure.y}: {figure.title}", style="bold"), Text(in_terminal(figure, min(to.width, WIDEST))), sep="\n")


def write_measured(result: Mapping[str, Any], path: Path) -> None:
    """Writes one page with the rows, the curves and what else was tried."""
    name, figures = str(result.get("reproduction", "")), _figures(result)
    if not figures:
        raise BadSetting(f"reproduce {name}", "--html", str(path), "cannot be written, because this one has nothing to draw")
    rows = result["rows"]
    apart = [c for c in dict.fromkeys(column for row in rows for column in row) if len({str(row.get(c)) for row in rows}) > 1]
    apart = apart or list(rows[0])
    same = ", ".join(f"{column} {value}" for column, value in rows[0].items() if column not in apart)
    caption = f"The same in every row: {same}." if same else ""
    sections = (
        *(Section(one.title, (one,)) for one in _tables(result)),
        *(Section(one.title, (one, *items(named_curves(one)))) for one in figures),
        Section("Measured", (_table("Measured", rows, apart, caption),)),
        *([Section("Also tried", items(result["tried"]))] if result.get("tried") else []),
    )
    corpus = f"Documents: {result['corpus']}." if "corpus" in result else ""
    write_report(path, in_html(Document(name, corpus, sections)))


def _tables(result: Mapping[str, Any]) -> list[Table]:
    return [_table(title, rows, list(rows[0])) for title, rows in result.get("tables", {}).items() if rows]


def _table(title: str, rows: Rows, columns: Sequence[str], caption: str = "") -> Table:
    """Numbers stand to the right and in one piece, and words give way to them."""
    numeric = [n for n, column in enumerate(columns) if not any(isinstance(row.get(column), str) for row in rows)]
    cells = tuple(tuple(cell(row.get(column)) for column in columns) for row in rows)
    heads = tuple(column.replace("_", " ") for column in columns)
    return Table(heads, cells, caption, title, numeric=numeric, whole=numeric)


def _pieces(table: Table, width: int) -> list[Table]:
    """The table below itself, so many columns at a time as the terminal holds; each piece names its rows."""
    needed = [
        max(len(head), *(len(str(row[n])) for row in table.rows)) + _EDGES if n in table.numeric else _OF_WORDS
        for n, head in enumerate(table.columns)
    ]
    if not table.rows or sum(needed) <= width:
        return [table]
    pieces, columns = [], [0]
    for n in range(1, len(needed) + 1):
        if n == len(needed) or (len(columns) > 1 and sum(needed[at] for at in (*columns, n)) > width):
            numeric = [at for at, column in enumerate(columns) if column in table.numeric]
            rows = tuple(tuple(row[at] for at in columns) for row in table.rows)
            heads = tuple(table.columns[at] for at in columns)
            pieces.append(
                replace(table, columns=heads, rows=rows, numeric=numeric, whole=numeric, caption="", title=table.title)
            )
            columns = [0]
        columns.append(n)
    return pieces


def cell(value: Any) -> str:
    """A value as it stands in a table, for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else f"{value:,.3g}" if isinstance(value, float) else str(value)


def _figures(result: Mapping[str, Any]) -> list[Figure]:
    return [
        Figure(
            plot["title"], plot["x"], plot["y"], tuple(Curve(name, tuple(map(tuple, at))) for name, at in plot["lines"].items())
        )
        for plot in result.get("plots", ())
        if "lines" in plot
    ]
