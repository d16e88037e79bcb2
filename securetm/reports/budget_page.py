"""The budget calculator's answer as one HTML file that loads nothing: no script, font or picture. It computes nothing.

It prints on white paper, and nothing on it is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from securetm.accounting.calculator.budget_report import FALSE_POSITIVES, BudgetReport, ReportTable
from securetm.reports.budget_tables import NO_GDP, percent
from securetm.reports.page import framed, plot_section, table_section, write_html
from securetm.wording import upward


def write_page(report: BudgetReport, path: Path) -> None:
    """Writes the page."""
    write_html(path, report.title, _parts(report))


def page(report: BudgetReport) -> str:
    """The whole file."""
    return framed(report.title, _parts(report))


def _parts(report: BudgetReport) -> tuple[str, ...]:
    return (_head(report), *map(_warning, report.warnings), *_sections(report), _settings(report), _end(report))


def _head(report: BudgetReport) -> str:
    attack = (
        f"Whoever tests for one {report.unit} and may err on {percent(FALSE_POSITIVES)} of those that were not used "
        f"finds at most <strong>{percent(report.true_positives)}</strong> of those that were."
    )
    return (
        f"<h1>{escape(report.title)}</h1>\n<p class=figures>epsilon = {upward(report.epsilon)} per {escape(report.unit)} "
        f"<small>delta = {report.delta:.3g}, by {escape(report.accountant)}</small></p>\n"
        f"<blockquote>{escape(report.statement)}</blockquote>\n<p>{attack}</p>"
    )


def _warning(sentence: str) -> str:
    return f'<p class=warning role="note"><b>Warning:</b> {escape(sentence)}</p>'


def _sections(report: BudgetReport) -> Sequence[str]:
    rows = tuple((row.accountant, row.epsilon, row.means) for row in report.by_accountant)
    title = f"epsilon per {report.unit} at delta = {report.delta:.3g}, by accountant"
    tables = (ReportTable(title, ("accountant", "epsilon", "what it is"), rows, NO_GDP), *report.tables)
    return (*map(table_section, tables), *map(plot_section, report.plots))


def _settings(report: BudgetReport) -> str:
    rows = tuple((name.replace("_", " "), _plain(value)) for name, value in report.settings.items() if value is not None)
    return table_section(ReportTable("What was asked", ("setting", "value"), rows))


def _plain(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _end(report: BudgetReport) -> str:
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in report.notes)
    return f"{notes}\n<footer><p>Computed by securetm from the settings above; no document was read.</p></footer>"
