"""An audit in the terminal: a sentence, a row for each finding, what was recovered, what was not tried. It judges nothing."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from securetm.leakage.findings import REFUTED, Audit, Finding
from securetm.reports.findings import CAUTION, figure, headline, of_whom, share

_SHOWN = 2  # examples of a finding


def show_audit(audit: Audit, examples: int, to: Console) -> None:
    """All of it, in the order in which people ask."""
    to.print(f"[bold]{escape(audit.title)}[/bold]")
    to.print(_verdicts(audit))
    for number, finding in enumerate(audit.findings, start=1):
        if finding.verdict != REFUTED:
            to.print(f"{number}. {finding.verdict}: {escape(finding.why)}.")
    for finding in audit.findings:
        if finding.examples and examples and finding.measured.hits:
            to.print(_recovered(finding, min(examples, _SHOWN)))
    style = "bold red" if audit.refuted_claims else "bold"
    to.print(f"[{style}]{escape(headline(audit))}[/{style}] {CAUTION}")
    to.print("[bold]Not tried:[/bold]")
    for sentence in audit.not_tried:
        to.print(f"  • {escape(sentence)}")
    to.print(f"{len(audit.findings)} findings in {audit.seconds:.0f} s.")


def _verdicts(audit: Audit) -> Table:
    table = Table(header_style="bold", show_lines=True)
    for column in ("", "profile", "claim", "attack, and what it reached", "chance", "verdict"):
        table.add_column(column, overflow="fold")
    for number, finding in enumerate(audit.findings, start=1):
        reached = f"{finding.title}: {figure(finding.measured)} {finding.measured.measure}"
        table.add_row(
            str(number),
            escape(finding.profile),
            escape(f"“{finding.claim}”: {of_whom(finding)}"),
            escape(reached),
            escape(share(finding.chance.value) if finding.chance and finding.chance.value is not None else "–"),
            f"[bold]{finding.verdict}[/bold]" if finding.verdict == REFUTED else escape(finding.verdict),
        )
    return table


def _recovered(finding: Finding, examples: int) -> Table:
    title = f"Recovered under {finding.profile} by {finding.title.lower()}"
    table = Table(title=title, title_justify="left", header_style="bold", show_lines=True)
    for column in ("the original", "recovered", "exact"):
        table.add_column(column, overflow="fold")
    for example in finding.examples[:examples]:
        table.add_row(escape(example.original), escape(example.recovered or "nothing"), "yes" if example.exact else "no")
    return table
