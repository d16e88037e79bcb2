"""`securetm health`: whether the coordinator of a plan, or the party of a PARTY.toml, works on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from securetm.cli.json_output import Json, print_json


def health(
    file: Annotated[Path, typer.Argument(help="The coordinator's plan, or a party's PARTY.toml.")],
    json: Json = False,
) -> None:
    """Says whether the process of this file works; exits 3 if it does not. For monitors of containers and services.

    It looks for the lock of the run or the data set, which the process holds on this machine, and whether a coordinator's
    network still moves. Without options it answers before any library loads, in some 40 ms.
    """
    from securetm.federation.health import check_works
    from securetm.plans.party_file import PartyFile
    from securetm.plans.recommend import read_plan
    from securetm.reports.terminal import results
    from securetm.settings import read_toml

    tables = read_toml(file)
    role = "party" if "data" in tables else "coordinator"
    _ = PartyFile.read(file) if role == "party" else read_plan(file, {})  # a file with a mistake is told with all its mistakes
    results(json).print(check_works(file, tables), markup=False)
    if json:
        print_json({"file": str(file), "role": role, "works": True})
