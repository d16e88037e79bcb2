"""The budget calculator's answer in the terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from securetm.accounting.calculator.budget_report import FALSE_POSITIVES, BudgetReport
from securetm.figures import ReportTable
from securetm.reports import document
from securetm.reports.charts import in_terminal
from securetm.reports.document import Document, Paragraph, Section, Words, cell, numbers_of, paragraphs, table_of
from securetm.reports.files import write_report
from securetm.reports.pages import in_html
from securetm.reports.terminal import WIDEST, rich_table
from securetm.wording import counted, downward, upward, upward_figure, upward_share

if TYPE_CHECKING:
    from securetm.accounting.calculator.series import RunOfSeries, Series
    from securetm.runs.kept_runs import KeptRun

_NO_GDP = "The Gaussian (GDP) approximation is not offered: it understates what is spent."


def show_report(report: BudgetReport, to: Console) -> None:
    """The sentence, warnings, tables, curves and notes of a report."""
    width = min(to.width, WIDEST)
    figures = Text.assemble(
        (f"{report.first}\n\n" if report.first else "", "bold"),
        (f"epsilon = {upward(report.epsilon)} per {report.unit}", "" if report.first else "bold"),
        f"   delta = {upward_figure(report.delta)}   ",
        f"({report.accountant})",
    )
    attack = attack_limit(report, upward_share(report.true_positives))
    head = Group(figures, Text(), Text(report.statement), Text(), Text(attack, style="italic"))
    to.print(Panel(head, title=Text(report.title, style="bold"), title_align="left", padding=(1, 2), width=width))
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


def attack_limit(report: BudgetReport, most: str) -> str:
    """The most that a membership test can find under this budget; `most` is the share as it is to be shown."""
    return (
        f"Whoever tests for one {report.unit} and may err on {upward_share(FALSE_POSITIVES)} of those that were not used "
        f"finds at most {most} of those that were."
    )


def all_tables(report: BudgetReport) -> tuple[document.Table, ...]:
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
    write_report(path, page(report))


def page(report: BudgetReport) -> str:
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
    asked = tuple(
        (name.replace("_", " "), f"{value:,.10g}" if isinstance(value, float) else cell(value))
        for name, value in report.settings.items()
        if value is not None
    )
    settings = Section("What was asked", (document.Table(("setting", "value"), asked), *paragraphs(report.notes, "note")))
    ending = ("Computed by securetm from the settings above; no document was read.",)
    sections = (Section("", head), *tables, *figures, settings)
    return in_html(Document(report.title, "", sections, kind="budget", ending=ending))


# ---- a series of runs over the same documents ------------------------------------------------------------------------

_COLUMNS = ("run", "began", "profile", "perplexity", "NPMI", "epsilon", "in all")
_DAY = len("2026-11-29")
_DIGEST, _SHOWN = 32, 8  # characters in a run's name, after its federation


def series_document(found: Sequence[Series], kept: Mapping[str, KeptRun]) -> Document:
    """All series of one home."""
    sections = tuple(
        Section(
            f"{one.owner}, {one.data_set}",
            (
                Paragraph(in_words(one), "strong"),
                document.Table(
                    _COLUMNS, tuple(_row(run, kept) for run in one.runs), numeric=(3, 4, 5, 6), whole=(1, 3, 4, 5, 6)
                ),
            ),
        )
        for one in found
    )
    return Document("Runs over the same documents", "", sections, kind="budget")


def in_words(one: Series) -> str:
    """What is left, and how long it lasts."""
    budget = f"epsilon {upward(one.epsilon)} of each {one.unit} at delta {upward_figure(one.delta)}"
    if not one.runs:
        return f"No run has spent anything yet of {budget}."
    if one.further is None or one.left is None:
        return f"Nothing bounds what all runs tell together: {', '.join(one.unbounded)} had no bound."
    left = f"Of {budget}, {downward(one.left)} is left after {counted(len(one.runs), 'run')}."
    if not one.further:
        return f"{left} No further run like the last one fits."
    more = "At least " if one.more else ""
    fits = f"{left} {more}{counted(one.further, 'further run')} like the last one {'fits' if one.further == 1 else 'fit'}"
    if one.each is None or not one.ends:
        return f"{fits}."
    days = round(one.each.total_seconds() / 86_400)
    often = "less than a day between two runs" if days < 1 else "a run every day" if days == 1 else f"a run every {days:,} days"
    return f"{fits}: with {often}, the first that does not is due on {one.ends}."


def series_facts(one: Series, kept: Mapping[str, KeptRun]) -> dict[str, Any]:
    """The same for a program."""
    runs = [{**asdict(run), **dict(zip(("perplexity", "npmi"), _quality(run, kept), strict=True))} for run in one.runs]
    days = None if one.each is None else one.each.total_seconds() / 86_400
    rest = {"left": one.left, "further_runs": one.further, "days_between_runs": days, "ends": one.ends or None}
    about = {"party": one.owner, "data_set": one.data_set, "unit": one.unit, "epsilon": one.epsilon, "delta": one.delta}
    return {**about, "runs": runs, **rest, "said": in_words(one)}


def _quality(run: RunOfSeries, kept: Mapping[str, KeptRun]) -> tuple[float | None, float | None]:
    """What its folder says; a ledger names the federation, too."""
    found = kept.get(run.run.rpartition(" ")[2])
    return (found.perplexity, found.npmi) if found else (None, None)


def _row(run: RunOfSeries, kept: Mapping[str, KeptRun]) -> tuple[str, ...]:
    found, coherence = _quality(run, kept)
    perplexity = "–" if found is None else f"{found:,.1f}"
    npmi = "–" if coherence is None else f"{coherence:.3f}"
    spent = ("∞" if value is None else upward(value) for value in (run.alone, run.together))
    federation, _, digest = run.run.rpartition(" ")
    name = f"{federation} {digest[:_SHOWN]}…" if len(digest) == _DIGEST else run.run
    return (name, run.began[:_DAY], run.profile or "–", perplexity, npmi, *spent)
