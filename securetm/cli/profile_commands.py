"""`securetm explain` and `securetm check`: what a profile means, and whether it is sound for what is asked of it."""

from __future__ import annotations

from typing import Annotated

import typer

from securetm.cli.json_output import Json, print_json

Profile = Annotated[str, typer.Argument(help="A profile's name, or a file ending in .toml.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(short_help="Say who sees what under a profile.", epilog="Example: securetm explain open")(explain)
    app.command(short_help="Name every gap of a profile.", epilog="Example: securetm check open --model prodlda")(check)


def explain(
    profile: Profile,
    parties: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="How many parties; if not given, 5 or as many as it needs.")
    ] = None,
    json: Json = False,
) -> None:
    """Says who sees what under a profile, what protects it, and what is spent."""
    from securetm.reports.explanation import explain as facts_of
    from securetm.reports.terminal import results, show_explanation

    facts = facts_of(profile, parties)
    show_explanation(facts, results(json))
    if json:
        print_json(facts)


def check(
    profile: Profile,
    model: Annotated[str | None, typer.Option(help="Check it for this topic model too.")] = None,
    threat_model: Annotated[str | None, typer.Option(help="Another threat model than the profile's own.")] = None,
    parties: Annotated[int, typer.Option(min=1, max=100_000, help="How many parties take part.")] = 5,
    json: Json = False,
) -> None:
    """Refuses an unsound choice and names every gap; exits 1 if there is one."""
    from securetm.federation.soundness import against
    from securetm.federation.soundness import check as gaps_of
    from securetm.reports.terminal import results, show_check

    facts = {**against(profile, threat_model), "gaps": gaps_of(profile, model, threat_model, parties)}
    show_check(facts, results(json))
    if json:
        print_json({**facts, "profile": profile, "sound": not facts["gaps"]})
    if facts["gaps"]:
        raise typer.Exit(1)
