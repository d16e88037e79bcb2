"""`securetm threats`: what each adversary must not learn, who claims it, which attack tried it and with what result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from securetm.cli.json_output import Json, print_json


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(
        short_help="Say what each adversary was kept from, and what tried it.", epilog="Example: securetm threats masked"
    )(threats)


def threats(
    profile: Annotated[str, typer.Argument(help="A profile's name, or a file ending in .toml.")],
    every: Annotated[bool, typer.Option("--all", help="Every threat model, beside the profile's own.")] = False,
    parties: Annotated[
        int | None,
        typer.Option(min=2, max=100_000, help="How many parties take part; if not given, 5, or as many as it needs."),
    ] = None,
    evidence: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Another folder of kept results than audits/evidence.")
    ] = None,
    json: Json = False,
) -> None:
    """Says what is required against each adversary, who claims it, what tried it and with what result.

    Exits 1 if a claim that the profile makes was refuted, if parties did not refuse what they should, or if its own threat
    model requires a claim that it does not make.
    """
    from securetm.reports.terminal import results
    from securetm.reports.threat_screen import show_threats
    from securetm.reports.threat_tables import threats_of

    facts = threats_of(profile, parties, every=every, folder=evidence)
    show_threats(facts, results(json))
    if json:
        print_json(facts)
    if facts["refuted_claims"] or facts["refusals"].get("not_held") or facts["threat_models"][0]["gaps"]:
        raise typer.Exit(1)
