"""The budget calculator's answer as one HTML file that loads no script, font or picture. This module computes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from securetm.accounting.calculator.budget_report import BudgetReport, ReportTable
from securetm.foreign_text import html_text
from securetm.reports.budget_tables import all_tables, attack_limit
from securetm.reports.page import framed, plot_section, table_section
from securetm.reports.writing import write_report
from securetm.wording import upward, upward_figure, upward_share


def write_page(report: BudgetReport, path: Path) -> None:
    """Writes the page."""
    write_report(path, page(report))


def page(report: BudgetReport) -> str:
    """The text of the page."""
    warnings = (f'<p class=warning role="note"><b>Warning:</b> {html_text(sentence)}</p>' for sentence in report.warnings)
    shown = (*map(table_section, all_tables(report)), *map(plot_section, report.plots))
    notes = "".join(f"<p class=note>{html_text(note)}</p>" for note in report.notes)
    end = f"{notes}\n<footer><p>Computed by securetm from the settings above; no document was read.</p></footer>"
    return framed(report.title, (_head(report), *warnings, *shown, _settings(report), end))


def _head(report: BudgetReport) -> str:
    attack = attack_limit(report, f"<strong>{upward_share(report.true_positives)}</strong>")
    first = f"<p class=figures>{html_text(report.first)}</p>\n" if report.first else ""
    return (
        f"<h1>{html_text(report.title)}</h1>\n{first}"
        f"<p class=figures>epsilon = {upward(report.epsilon)} per {html_text(report.unit)} "
        f"<small>delta = {upward_figure(report.delta)}, by {html_text(report.accountant)}</small></p>\n"
        f"<blockquote>{html_text(report.statement)}</blockquote>\n<p>{attack}</p>"
    )


def _settings(report: BudgetReport) -> str:
    rows = tuple((name.replace("_", " "), _plain(value)) for name, value in report.settings.items() if value is not None)
    return table_section(ReportTable("What was asked", ("setting", "value"), rows))


def _plain(value: Any) -> str:
    return f"{value:,.10g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
