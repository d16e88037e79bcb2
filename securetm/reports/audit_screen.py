"""An audit in the terminal. It fits eighty columns, since each table folds only its last column."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from securetm.leakage.audit_record import Audit
from securetm.leakage.verdicts import BROKEN, OPEN, REFUTED, standing
from securetm.reports.audit_tables import (
    FINDING_COLUMNS,
    AuditTable,
    Cell,
    counts_table,
    examples_table,
    findings_table,
    refusals_table,
)
from securetm.reports.audit_wording import CAUTION, Numbered, by_adversary, headline
from securetm.reports.terminal import show_list, titled
from securetm.wording import counted


def show_audit(audit: Audit, examples: int, to: Console) -> None:
    """Prints verdicts, reasons, examples, the summary, refusals and what was not tried."""
    to.print(f"[bold]{escape(audit.title)}[/bold]")
    for adversary, several in by_adversary(audit).items():
        to.print(_findings(f"Seen by {adversary}", several))
    for number, finding in enumerate(audit.findings, start=1):
        if finding.outcome.verdict != REFUTED:
            to.print(f"{number}. {standing(finding)}: {escape(finding.outcome.why)}.")
    for number, finding in enumerate(audit.findings, start=1):
        if finding.leaked and examples and (finding.outcome.verdict == REFUTED or finding.outcome.measured.hits):
            title = f"{number}. Recovered under {finding.run.profile} by {finding.about.title.lower()}"
            to.print(_table(examples_table(finding, examples), title, captioned=True))
    to.print(_table(counts_table(audit), numeric=True))
    style = "bold red" if audit.refuted_claims else "bold"
    to.print(f"[{style}]{escape(headline(audit))}[/{style}] {CAUTION}")
    show_list("What the parties refused", [_refusal(row) for row in refusals_table(audit).rows], to)
    show_list("Not tried", audit.not_tried, to)
    to.print(f"{counted(len(audit.findings), 'finding')} in {audit.seconds:.0f} s.")


def _findings(title: str, several: Sequence[Numbered]) -> Table:
    """Number and verdict have columns of their own. The last column holds all others, one below the other."""
    whole = findings_table(several)
    upright = [True, *(column.upright for column in FINDING_COLUMNS)]
    stacked = ", ".join(name for name, one in zip(whole.columns, upright, strict=True) if not one)
    columns = [Column(name, no_wrap=True) for name, one in zip(whole.columns, upright, strict=True) if one]
    table = titled(escape(title), *columns, Column(stacked, overflow="fold"), title_style="bold", box=SIMPLE_HEAD)
    for row in whole.rows:
        ahead = [_lines(cell) for cell, one in zip(row, upright, strict=True) if one]
        below = [line for cell, one in zip(row, upright, strict=True) if not one for line in cell]
        table.add_row(*ahead, _lines(below))
    return table


def _lines(cell: Cell) -> str:
    first, *rest = (escape(line).replace("\N{NO-BREAK SPACE}%", "%") for line in cell)  # rich would break it
    bold = f"[bold]{first}[/bold]" if first.endswith((f" {BROKEN}", f" {OPEN}")) else first
    return "\n".join((bold, *(f"[dim]{line}[/dim]" for line in rest)))


def _table(whole: AuditTable, title: str = "", *, numeric: bool = False, captioned: bool = False) -> Table:
    caption = escape(whole.caption) if captioned else ""
    table = titled(escape(title), caption=caption, box=SIMPLE_HEAD, show_lines=captioned)
    for place, name in enumerate(whole.columns):
        table.add_column(name, overflow="fold", justify="right" if numeric and place else "left", no_wrap=numeric)
    for row in whole.rows:
        table.add_row(*map(_lines, row))
    return table


def _refusal(row: tuple[Cell, ...]) -> str:
    (profile,), (least,), (attempt,), (became,) = row
    at_least = "" if least == "–" else f", at least {least} documents"
    return f"{profile}{at_least}: {attempt}: {became}"
