"""Shows a report of the budget calculator: in the terminal, as a page, as JSON. It computes nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from securetm.cli.json_output import print_json

if TYPE_CHECKING:
    from securetm.accounting.calculator.budget_report import BudgetReport
    from securetm.stages import Stages


def answer(report: Callable[[Stages], BudgetReport], html: Path | None, json: bool) -> None:
    """Shows the report, and prints it as JSON if asked."""
    said = shown(report, html, json)
    if json:
        print_json(said.record())


def shown(compute: Callable[[Stages], BudgetReport], html: Path | None, json: bool) -> BudgetReport:
    """Computes the report and shows it."""
    from securetm.reports.budget import show_report, write_page
    from securetm.reports.terminal import LateBars, results, screen

    to = screen()
    with LateBars(to) as progress:
        report = compute(progress)
    show_report(report, results(json))
    if html is not None:
        write_page(report, html)
        to.print(f"Written to {html}", markup=False)
    return report
