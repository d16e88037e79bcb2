"""`securetm audit`: attacks a real run with what its adversaries saw, and says what leaked."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from securetm.cli.output import Json, print_json
from securetm.cli.report import Examples, Html, Markdown, check_places, hand_out


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(short_help="Attack a run and say what leaked.", epilog="Example: securetm audit quick --html audit.html")(audit)


def audit(
    plan: Annotated[str, typer.Argument(help="An audit plan: one of audits/plans, such as quick, or a file.")],
    run: Annotated[Path | None, typer.Option(help="The folder of a run made with --record, to be tried too.")] = None,
    html: Html = None,
    markdown: Markdown = None,
    keep: Annotated[Path | None, typer.Option(help="Keep the runs that the audit makes in this folder.")] = None,
    evidence: Annotated[
        Path | None, typer.Option(help="Keep results in this folder, and carry out only what is missing there or stale.")
    ] = None,
    examples: Examples = 2,
    json: Json = False,
) -> None:
    """Carries out an audit plan; exits 1 if a claim that a profile makes was refuted.

    Without --run it makes its own runs on public texts, first without protection: what does not break there proves nothing.
    """
    if evidence is not None and run is not None:
        raise typer.BadParameter("evidence is of runs that the audit makes itself: leave one of --run and --evidence away")
    from securetm.leakage.audit import audit as carried_out
    from securetm.leakage.evidence import renewed
    from securetm.leakage.plans import read_audit_plan
    from securetm.reports.audit_reading import write_record
    from securetm.reports.audit_tables import show_audit
    from securetm.reports.progress import Bars
    from securetm.reports.terminal import screen

    check_places(html, markdown)
    to = screen()
    with Bars(to) as bars:
        whole, carry_out = read_audit_plan(plan), partial(carried_out, keep=keep, stages=bars)
        found = renewed(whole, evidence, partial(carry_out, whole=whole)) if evidence is not None else carry_out(whole, run)
    if found is None:
        to.print(f"Nothing of {plan} is missing or stale in {evidence}.", markup=False)
        if json:
            print_json({"plan": whole.name, "run": "", "findings": []})
        return
    if evidence is not None:
        to.print(f"This is what was carried out now; {evidence} has all that was kept.", markup=False)
    show_audit(found, examples, to)
    if run is not None:
        to.print(f"Kept: {write_record(found, run, examples)}; show it again with securetm report {run}", markup=False)
    hand_out(found, html, markdown, examples, json)
    if found.refuted_claims:
        raise typer.Exit(1)
