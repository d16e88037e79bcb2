"""The budget calculator's answer in the terminal and on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from securetm.accounting.calculator.budget_report import FALSE_POSITIVES, BudgetReport
from securetm.figures import ReportTable
from securetm.reports import document
from securetm.reports.charts import in_terminal
from securetm.reports.document import Document, Paragraph, Section, Words, numbers_of, paragraphs, table_of
from securetm.reports.files import write_report
from securetm.reports.pages import in_html
from securetm.reports.terminal import WIDEST, rich_table
from securetm.wording import upward, upward_figure, upward_share

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
        to.print(rich_table(table), width=width)
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


def all_tables(report: BudgetReport) -> tuple[document.Table, ...]:
    """The report's own tables, then the epsilon by each accountant."""
    found = report.tables
    if report.by_accountant:
        rows = tuple((row.accountant, row.epsilon, row.means) for row in report.by_accountant)
        title = f"epsilon per {report.unit} at delta = {upward_figure(report.delta)}, by accountant"
        found = (*found, ReportTable(title, ("accountant", "epsilon", "what it is"), rows, _NO_GDP))
    return tuple(map(table_of, found))


def _bullet(mark: str, sentence: str, style: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, style=style)
    grid.add_column(overflow="fold")
    grid.add_row(mark, escape(sentence))
    return grid


def write_page(report: BudgetReport, path: Path) -> None:
    """Writes the page."""
    write_report(path, page(report))


def page(report: BudgetReport) -> str:
    """The text of the page."""
    found = f"epsilon = {upward(report.epsilon)} per {report.unit} "
    beside = Words(f"delta = {upward_figure(report.delta)}, by {report.accountant}", "note")
    head = (
        *paragraphs((report.first,), "figure"),
        Paragraph((found, beside), "figure"),
        Paragraph(report.statement, "strong"),
        Paragraph(attack_limit(report, upward_share(report.true_positives))),
        *paragraphs(report.warnings, "warning"),
    )
    tables = (Section(one.title, (one,)) for one in all_tables(report))
    figures = (Section(one.title, (one, numbers_of(one))) for one in report.plots)
    asked = tuple((name.replace("_", " "), _plain(value)) for name, value in report.settings.items() if value is not None)
    settings = Section("What was asked", (document.Table(("setting", "value"), asked), *paragraphs(report.notes, "note")))
    ending = ("Computed by securetm from the settings above; no document was read.",)
    sections = (Section("", head), *tables, *figures, settings)
    return in_html(Document(report.title, "", sections, kind="budget", ending=ending))


def _plain(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
