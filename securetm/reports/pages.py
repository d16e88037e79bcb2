"""The frame of every page: one HTML file that loads nothing, prints on white paper, and needs no colour."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from securetm.accounting.calculator.budget_report import Plot, ReportTable
from securetm.foreign_text import html_text, without_commands
from securetm.reports.charts import in_svg
from securetm.wording import upward

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #5b5b5b; --rule: #c9c9c9; --paper: #fff;
        --line: #0b4f8a; --warn: #8a4b00 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eaeaea; --soft: #a9a9a9; --rule: #4a4a4a; --paper: #161616; --line: #8cc1f0; --warn: #f0b35c }
}
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #333; --rule: #999; --paper: #fff; --line: #000; --warn: #000 }
  @page { margin: 18mm }
  body { margin: 0; max-width: none }
}
body { max-width: 46rem; margin: 2.5rem auto; padding: 0 1rem; background: var(--paper); color: var(--ink);
       font: 1rem/1.5 Georgia, "Times New Roman", serif }
h1 { font-size: 1.35rem; line-height: 1.3 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
h1, h2, table, figure, .figures { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif }
.figures { font-size: 1.6rem; margin: .5rem 0 } .figures small { font-size: 1rem; color: var(--soft) }
blockquote { margin: 1rem 0; padding: .25rem 0 .25rem 1.2rem; border-left: .25rem solid var(--ink); font-size: 1.1rem }
.warning { border: 1px solid var(--warn); padding: .5rem .8rem; margin: .5rem 0 } .warning b { color: var(--warn) }
table { border-collapse: collapse; font-size: .9rem; width: 100% }
caption { text-align: left; color: var(--soft); caption-side: bottom; padding-top: .3rem }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--rule) }
th { border-bottom: 2px solid var(--ink) }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums }
figure { margin: 0 } .plot { width: 100%; height: auto; font-size: 13px; fill: var(--ink) }
.plot path, .plot line { fill: none; stroke: var(--ink); stroke-width: 1 }
.plot .grid { stroke: var(--rule); stroke-width: .7 } .plot path[class^=line] { stroke-width: 2 }
.plot .line0 { stroke: var(--line) } .plot .marked { fill: var(--line); stroke: var(--paper) }
section, figure, tr, .warning { break-inside: avoid } footer, .note { color: var(--soft); font-size: .9rem }
"""

_ALONE = "default-src 'none'; base-uri 'none'; form-action 'none'"


def static(name: str) -> str:
    """A file of styles, of script or of markup that a page holds."""
    return (Path(__file__).parent / name).read_text("utf-8")


def framed(title: str, parts: Sequence[str], style: str = "", script: str = "") -> str:
    """The text of a page. `style` adds rules to those of all pages. A page with a script runs that script and no other."""
    styles = f"{_STYLE}{style}"
    allowed = (
        f"script-src {_only(script)}; style-src {_only(styles)}; require-trusted-types-for 'script'"
        if script
        else "style-src 'unsafe-inline'"
    )
    last = f"\n<script>{script}</script>" if script else ""
    body = without_commands("\n".join(parts))  # whatever a part forgot to spell out
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html_text(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_ALONE}; {allowed}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{styles}</style></head>\n'
        f"<body>\n{body}{last}\n</body></html>\n"
    )


def on_each_sheet(foot: str) -> str:
    """The rule that prints the foot on every sheet."""
    safe = "".join(letter if letter.isalnum() or letter in " .,:;-" else f"\\{ord(letter):x} " for letter in foot)
    return f'@media print {{ @page {{ @bottom-left {{ content: "{safe}"; font: 7pt sans-serif }} }} }}' if foot else ""


def _only(text: str) -> str:
    """The source expression of a script or a style that must be this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def figure_section(plot: Plot) -> str:
    """A figure under its title."""
    return f"<section><h2>{html_text(plot.title)}</h2>\n<figure>{in_svg(plot)}</figure></section>"


def plot_section(plot: Plot) -> str:
    """A figure, and a table of its numbers below it."""
    places = sorted({x for line in plot.lines for x, _ in line.points})
    known = [dict(line.points) for line in plot.lines]
    rows = tuple((f"{x:,.10g}", *(points.get(x) for points in known)) for x in places)
    numbers = ReportTable("The same as numbers", (plot.x, *(line.name for line in plot.lines)), rows)
    return f"{figure_section(plot)}\n{table_section(numbers)}"


def table_section(table: ReportTable) -> str:
    """A table under its title; columns of numbers stand to the right."""
    kinds = [" class=number" if right else "" for right in numeric(table)]
    head = "".join(f"<th{kind}>{html_text(name)}</th>" for name, kind in zip(table.columns, kinds, strict=True))
    body = "\n".join(
        "<tr>" + "".join(f"<td{kind}>{html_text(cell(v))}</td>" for v, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{html_text(table.caption)}</caption>" if table.caption else ""
    rows = f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
    return f"<section><h2>{html_text(table.title)}</h2>\n<table>{caption}{rows}</table></section>"


def numeric(table: ReportTable) -> list[bool]:
    """For each column, whether it holds numbers only."""
    return [all(isinstance(row[place], int | float | None) for row in table.rows) for place in range(len(table.columns))]


def cell(value: Any) -> str:
    """A cell of a table: a budget is rounded upwards, a missing value is a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return upward(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
