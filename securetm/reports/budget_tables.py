"""The budget calculator's answer in the terminal: sentence, figures, tables, curve. This module computes nothing."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from securetm.accounting.calculator.budget_report import FALSE_POSITIVES, BudgetReport, ReportTable
from securetm.reports.plots import in_terminal
from securetm.reports.terminal import titled
from securetm.wording import upward, upward_figure, upward_share

WIDEST = 110  # a longer line is hard to read
_NO_GDP = "The Gaussian (GDP) approximation is not offered: it understates what is spent."


def show_report(report: BudgetReport, to: Console) -> None:
    """The sentence, warnings, tables, curves and notes of a report."""
    width = min(to.width, WIDEST)
    to.print(Panel(_head(report), title=Text(report.title, style="bold"), title_align="left", padding=(1, 2), width=width))
    for warning in report.warnings:
        to.print(_bullet("!", warning, "bold yellow"), width=width)
    if report.warnings:
        to.print()
    for place, table in enumerate(all_tables(report)):
        if place:
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
        (f"{report.first}\n\n" if report.first else "", "bold"),
        (f"epsilon = {upward(report.epsilon)} per {report.unit}", "" if report.first else "bold"),
        f"   delta = {upward_figure(report.delta)}   ",
        f"({report.accountant})",
    )
    attack = attack_limit(report, upward_share(report.true_positives))
    return Group(figures, Text(), Text(report.statement), Text(), Text(attack, style="italic"))


def attack_limit(report: BudgetReport, most: str) -> str:
    """The most that a membership test can find under this budget; `most` is the share as it is to be shown."""
    return (
        f"Whoever tests for one {report.unit} and may err on {upward_share(FALSE_POSITIVES)} of those that were not used "
        f"finds at most {most} of those that were."
    )


def all_tables(report: BudgetReport) -> tuple[ReportTable, ...]:
    """The report's own tables, then the epsilon by each accountant."""
    if not report.by_accountant:
        return report.tables
    rows = tuple((row.accountant, row.epsilon, row.means) for row in report.by_accountant)
    title = f"epsilon per {report.unit} at delta = {upward_figure(report.delta)}, by accountant"
    return (*report.tables, ReportTable(title, ("accountant", "epsilon", "what it is"), rows, _NO_GDP))


def _bullet(mark: str, sentence: str, style: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold")
    grid.add_row(mark, escape(sentence))
    return grid


def _table(table: ReportTable, width: int) -> Table:
    aligned = zip(table.columns, numeric(table), strict=True)
    columns = (Column(name, justify="right" if right else "left", overflow="fold") for name, right in aligned)
    shown = titled(table.title, *columns, caption=escape(table.caption), title_style="bold")
    for row in table.rows:
        shown.add_row(*(escape(cell(value)) for value in row))
    screen = Console(width=width)
    if shown.__rich_measure__(screen, screen.options).maximum > width:
        shown.width = width
    return shown


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
