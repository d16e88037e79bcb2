"""`securetm parts`: every model, mechanism, aggregation, attack and corpus reader, and which package brings each."""

from __future__ import annotations

import typer

from securetm.cli.json_output import Json, print_json


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(short_help="List every part that can be named.", epilog="Example: securetm parts --json")(parts)


def parts(json: Json = False) -> None:
    """Lists models, mechanisms, aggregations, attacks and corpus readers by name, those of installed packages too.

    Nothing is imported to list it. A name that several packages declare is listed once for each, and refused where it is used.
    """
    from securetm.reports.part_tables import listed_parts, show_parts
    from securetm.reports.terminal import results

    facts = listed_parts()
    show_parts(facts, results(json))
    if json:
        print_json(facts)
