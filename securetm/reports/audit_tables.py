"""An audit in the terminal: a sentence, a row for each finding, what was recovered, what was not tried. It judges nothing.

Eighty columns are enough: only the last column of each table gives way.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from securetm.leakage.findings import Audit, Finding, Refusal
from securetm.leakage.verdicts import REFUTED
from securetm.reports.findings import (
    CAUTION,
    MARKS,
    Numbered,
    about_examples,
    by_adversary,
    compared,
    figure,
    headline,
    helped,
    of_whom,
    promised,
    quoted,
    refusal_in_words,
    since,
    tally,
    verdict,
    worst_first,
)
from securetm.wording import counted


def show_audit(audit: Audit, examples: int, to: Console) -> None:
    """All of it, in the order in which people ask."""
    to.print(f"[bold]{escape(audit.title)}[/bold]")
    for (threats, adversary), several in by_adversary(audit).items():
        to.print(_verdicts(f"{adversary} of {threats}", several))
    _say_why(audit, to)
    for number, finding in enumerate(audit.findings, start=1):
        if finding.examples and examples and (finding.verdict == REFUTED or finding.measured.hits):
            to.print(_recovered(number, finding, examples))
    _sum_up(audit, to)
    _list("What the parties refused", [_refusal(one) for one in worst_first(audit)], to)
    _list("Not tried", audit.not_tried, to)
    to.print(f"{counted(len(audit.findings), 'finding')} in {audit.seconds:.0f} s.")


def _verdicts(title: str, several: Sequence[Numbered]) -> Table:
    table = Table(
        title=escape(f"Seen by {title}"), title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD
    )
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("profile", overflow="fold", max_width=14)
    table.add_column("attack, what it reached, and what it tried", overflow="fold")
    for number, finding in several:
        shown = f"[bold]{verdict(finding)}[/bold]" if finding.verdict == REFUTED else verdict(finding)
        table.add_row(str(number), shown, escape(finding.profile), _told(finding))
    return table


def _told(finding: Finding) -> str:
    found = finding.measured
    lines = (
        finding.title,
        f"{found.measure}: {figure(found)}",
        compared(finding) if found.value is not None else "",
        f"tries “{finding.claim}”, {of_whom(finding)}",
        helped(finding),
        promised(finding),
        since(finding),
    )
    first, *rest = (escape(line).replace("\N{NO-BREAK SPACE}%", "%") for line in lines if line)  # rich would break it
    return "\n".join((first, *(f"[dim]{line}[/dim]" for line in rest)))


def _say_why(audit: Audit, to: Console) -> None:
    for number, finding in enumerate(audit.findings, start=1):
        if finding.verdict != REFUTED:
            to.print(f"{number}. {finding.verdict}: {escape(finding.why)}.")


def _recovered(number: int, finding: Finding, examples: int) -> Table:
    title = f"{number}. Recovered under {escape(finding.profile)} by {escape(finding.title.lower())}"
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, show_lines=True)
    table.caption, table.caption_justify = escape(about_examples(finding)) or None, "left"
    for column in ("the original", "recovered", "exact"):
        table.add_column(column, overflow="fold")
    for example in finding.examples[:examples]:
        table.add_row(*map(escape, quoted(example)))
    return table


def _sum_up(audit: Audit, to: Console) -> None:
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    for column in ("number of findings", *(f"{mark} {word}" for word, mark in MARKS.items())):
        table.add_column(column, justify="left" if column == "number of findings" else "right", no_wrap=True)
    for name, *counts in tally(audit):
        table.add_row(name, *map(str, counts))
    to.print(table)
    style = "bold red" if audit.refuted_claims else "bold"
    to.print(f"[{style}]{escape(headline(audit))}[/{style}] {CAUTION}")


def _refusal(one: Refusal) -> str:
    least = f", at least {one.minimum:,} documents" if one.minimum else ""
    return f"{one.profile}{least}: {one.attempt}: {refusal_in_words(one)}"


def _list(title: str, sentences: Sequence[str], to: Console) -> None:
    if sentences:
        to.print(f"[bold]{title}:[/bold]")
    for sentence in sentences:
        to.print(f"  • {escape(sentence)}")
