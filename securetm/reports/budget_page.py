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


def write_page(sheet: BudgetReport, path: Path) -> None:
    """Writes the page."""
    write_html(path, sheet.title, _parts(sheet))


def page(sheet: BudgetReport) -> str:
    """The whole file."""
    return framed(sheet.title, _parts(sheet))


def _parts(sheet: BudgetReport) -> tuple[str, ...]:
    return (_head(sheet), *map(_warning, sheet.warnings), *_sections(sheet), _settings(sheet), _end(sheet))


def _head(sheet: BudgetReport) -> str:
    attack = (
        f"Whoever tests for one {sheet.unit} and may err on {percent(FALSE_POSITIVES)} of those that were not used "
        f"finds at most <strong>{percent(sheet.true_positives)}</strong> of those that were."
    )
    return (
        f"<h1>{escape(sheet.title)}</h1>\n<p class=figures>epsilon = {upward(sheet.epsilon)} per {escape(sheet.unit)} "
        f"<small>delta = {sheet.delta:.3g}, by {escape(sheet.accountant)}</small></p>\n"
        f"<blockquote>{escape(sheet.statement)}</blockquote>\n<p>{attack}</p>"
    )


def _warning(sentence: str) -> str:
    return f'<p class=warning role="note"><b>Warning:</b> {escape(sentence)}</p>'


def _sections(sheet: BudgetReport) -> Sequence[str]:
    rows = tuple((row.accountant, row.epsilon, row.means) for row in sheet.by_accountant)
    title = f"epsilon per {sheet.unit} at delta = {sheet.delta:.3g}, by accountant"
    tables = (ReportTable(title, ("accountant", "epsilon", "what it is"), rows, NO_GDP), *sheet.tables)
    return (*map(table_section, tables), *map(plot_section, sheet.plots))


def _settings(sheet: BudgetReport) -> str:
    rows = tuple((name.replace("_", " "), _plain(value)) for name, value in sheet.settings.items() if value is not None)
    return table_section(ReportTable("What was asked", ("setting", "value"), rows))


def _plain(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _end(sheet: BudgetReport) -> str:
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in sheet.notes)
    return f"{notes}\n<footer><p>Computed by securetm from the settings above; no document was read.</p></footer>"
