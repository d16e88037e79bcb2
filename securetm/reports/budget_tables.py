"""The budget calculator's answer in the terminal: sentence, figures, tables, curve. It shows records and computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table as RichTable
from rich.text import Text

from securetm.accounting.calculator.budget_report import FALSE_POSITIVES, BudgetReport, ReportTable
from securetm.reports.plots import in_terminal
from securetm.wording import upward

WIDEST = 110  # a sentence longer than this is hard to read
NO_GDP = "The Gaussian (GDP) approximation is not offered: it understates what is spent."


def show_report(report: BudgetReport, to: Console) -> None:
    """All of it, in the order in which people ask."""
    width = min(to.width, WIDEST)
    to.print(Panel(_head(report), title=Text(report.title, style="bold"), title_align="left", padding=(1, 2), width=width))
    for warning in report.warnings:
        to.print(_bullet("!", warning, "bold yellow"), width=width)
    if report.warnings:
        to.print()
    to.print(_accountants(report, width))
    for table in report.tables:
        to.print()
        to.print(_table(table, width))
    for plot in report.plots:
        to.print(f"\n[bold]{escape(plot.title)}[/bold]")
        to.print(Text(in_terminal(plot, min(width, 90))), soft_wrap=True)
    if report.notes:
        to.print()
    for note in report.notes:
        to.print(_bullet("•", note, "dim"), width=width)


def _head(report: BudgetReport) -> Group:
    figures = Text.assemble(
        (f"epsilon = {upward(report.epsilon)} per {report.unit}", "bold"),
        f"   delta = {report.delta:.3g}   ",
        f"({report.accountant})",
    )
    attack = (
        f"Whoever tests for one {report.unit} and may err on {percent(FALSE_POSITIVES)} of those that were not used "
        f"finds at most {percent(report.true_positives)} of those that were."
    )
    return Group(figures, Text(), Text(report.statement), Text(), Text(attack, style="italic"))


def percent(share: float) -> str:
    """A share for people: 7.3 %, and 100 % only where it is; the space does not break."""
    if 0.999 < share < 1:
        return "more than 99.9\N{NO-BREAK SPACE}%"
    return f"{100 * share:.1f}".removesuffix(".0") + "\N{NO-BREAK SPACE}%"


def _bullet(mark: str, sentence: str, style: str) -> RichTable:
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold")
    grid.add_row(mark, escape(sentence))
    return grid


def _accountants(report: BudgetReport, width: int) -> RichTable:
    rows = tuple((row.accountant, row.epsilon, row.means) for row in report.by_accountant)
    title = f"epsilon per {report.unit} at delta = {report.delta:.3g}, by accountant"
    return _table(ReportTable(title, ("accountant", "epsilon", "what it is"), rows, NO_GDP), width)


def _table(table: ReportTable, width: int) -> RichTable:
    rich = RichTable(title=table.title, title_justify="left", title_style="bold", header_style="bold", width=None)
    numeric = [_numbers(table.rows, place) for place in range(len(table.columns))]
    for name, right in zip(table.columns, numeric, strict=True):
        rich.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in table.rows:
        rich.add_row(*(escape(cell(value)) for value in row))
    rich.caption, rich.caption_justify = escape(table.caption), "left"
    if rich.__rich_measure__(_probe(width), _probe(width).options).maximum > width:
        rich.width = width
    return rich


def _probe(width: int) -> Console:
    return Console(width=width)


def _numbers(rows: Sequence[Sequence[Any]], place: int) -> bool:
    return all(isinstance(row[place], int | float) or row[place] is None for row in rows)


def cell(value: Any) -> str:
    """A cell of a table: budgets rounded upwards, whole numbers whole, nothing as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return upward(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
