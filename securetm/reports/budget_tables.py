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


def show_sheet(sheet: BudgetReport, to: Console) -> None:
    """All of it, in the order in which people ask."""
    width = min(to.width, WIDEST)
    to.print(Panel(_head(sheet), title=Text(sheet.title, style="bold"), title_align="left", padding=(1, 2), width=width))
    for warning in sheet.warnings:
        to.print(_bullet("!", warning, "bold yellow"), width=width)
    if sheet.warnings:
        to.print()
    to.print(_accountants(sheet, width))
    for table in sheet.tables:
        to.print()
        to.print(_table(table, width))
    for plot in sheet.plots:
        to.print(f"\n[bold]{escape(plot.title)}[/bold]")
        to.print(Text(in_terminal(plot, min(width, 90))), soft_wrap=True)
    if sheet.notes:
        to.print()
    for note in sheet.notes:
        to.print(_bullet("•", note, "dim"), width=width)


def _head(sheet: BudgetReport) -> Group:
    figures = Text.assemble(
        (f"epsilon = {upward(sheet.epsilon)} per {sheet.unit}", "bold"),
        f"   delta = {sheet.delta:.3g}   ",
        f"({sheet.accountant})",
    )
    attack = (
        f"Whoever tests for one {sheet.unit} and may err on {percent(FALSE_POSITIVES)} of those that were not used "
        f"finds at most {percent(sheet.true_positives)} of those that were."
    )
    return Group(figures, Text(), Text(sheet.statement), Text(), Text(attack, style="italic"))


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


def _accountants(sheet: BudgetReport, width: int) -> RichTable:
    rows = tuple((row.accountant, row.epsilon, row.means) for row in sheet.by_accountant)
    title = f"epsilon per {sheet.unit} at delta = {sheet.delta:.3g}, by accountant"
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
