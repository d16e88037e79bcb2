"""`securetm audit foreign`: attacks a topic model of another library, with documents that it was trained on, and others."""

from __future__ import annotations

from pathlib import Path

import typer

from securetm.cli.report_command import at_home, check_places, hand_out

FOREIGN = "foreign"

Shown = tuple[Path | None, Path | None, int | None, bool]  # page, summary, examples, JSON


def foreign(
    model: Path | None,
    members: Path | None,
    others: Path | None,
    canaries: tuple[Path | None, Path | None],
    text: str | None,
    epsilon: float | None,
    delta: float,
    shown: Shown,
) -> None:
    """Audits the model; exits 1 if a claim of its maker was refuted."""
    html, markdown, examples, json = shown
    if model is None or members is None or others is None:
        raise typer.BadParameter("name the model, --members and --non-members")
    if (canaries[0] is None) != (canaries[1] is None):
        raise typer.BadParameter("--canaries-in and --canaries-out belong together")
    check_places(html, markdown)
    from securetm.auditing.foreign import ForeignFiles, audit_foreign, claim_of
    from securetm.reports.audits.report import show_audit
    from securetm.reports.terminal import Bars, results, screen

    both = (canaries[0], canaries[1]) if canaries[0] is not None and canaries[1] is not None else None
    claimed = claim_of(epsilon, delta) if epsilon is not None else None
    with Bars(screen()) as bars:
        found = audit_foreign(ForeignFiles(model, members, others, both, text, claimed), bars)
    show_audit(found, at_home(examples), results(json))
    hand_out(found, html, markdown, examples, json)
    if found.refuted_claims:
        raise typer.Exit(1)
