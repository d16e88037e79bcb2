"""`securetm audit`: attacks a real run with what its adversaries saw, and says what leaked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from securetm.cli.output import Json, print_json


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(short_help="Attack a run and say what leaked.", epilog="Example: securetm audit quick --html audit.html")(audit)


def audit(
    plan: Annotated[str, typer.Argument(help="An audit plan: one of audits/plans, such as quick, or a file.")],
    run: Annotated[Path | None, typer.Option(help="The folder of a run made with --record, to be tried too.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as one page.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep the runs that the audit makes in this folder.")] = None,
    examples: Annotated[int, typer.Option(min=0, max=6, help="Documents quoted for each finding; 0 quotes none.")] = 2,
    json: Json = False,
) -> None:
    """Carries out an audit plan; exits 1 if a claim that a profile makes was refuted.

    Without --run it makes its own runs on public texts, first without protection: what does not break there proves nothing.
    """
    from securetm.leakage.audit import audit as carried_out
    from securetm.reports.audit_page import write_audit
    from securetm.reports.audit_tables import show_audit
    from securetm.reports.findings import record
    from securetm.reports.progress import Bars
    from securetm.reports.terminal import screen

    to = screen()
    with Bars(to) as bars:
        found = carried_out(plan, run, keep=keep, stages=bars)
    show_audit(found, examples, to)
    if html is not None:
        write_audit(found, html, examples)
        to.print(f"The report: {html}")
    if json:
        print_json(record(found, examples))
    if found.refuted_claims:
        raise typer.Exit(1)
