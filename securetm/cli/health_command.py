"""`securetm health`: whether the coordinator of a plan, or the party of a PARTY.toml, works on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from securetm.cli.json_output import Json, print_json
from securetm.cli.key_options import PassphraseFile


def health(
    file: Annotated[Path, typer.Argument(help="The coordinator's plan, or a party's PARTY.toml.")],
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """Says whether the process of this file works; exits 3 if it does not. For monitors of containers and services.

    The coordinator is asked through its gRPC health service over mutual TLS. A party is known by the lock of its data set.
    """
    from securetm.federation.network.at_work import check_party_works
    from securetm.reports.terminal import results
    from securetm.toml_settings import read_toml

    if is_party := "data" in read_toml(file):
        check_party_works(file)
    else:
        _check_coordinator(file, passphrase_file)
    results(json).print(f"The {'party' if is_party else 'coordinator'} of {file} works.", markup=False)
    if json:
        print_json({"file": str(file), "role": "party" if is_party else "coordinator", "works": True})


def _check_coordinator(plan: Path, passphrase_file: Path | None) -> None:
    from securetm.cli.passphrases import passphrase_for
    from securetm.federation.coordinator_files import CoordinatorFiles
    from securetm.federation.network.at_work import check_coordinator_works
    from securetm.plan_reading import read_plan

    choice = read_plan(plan, {}).coordinator
    files = CoordinatorFiles.read(choice, plan.parent, lambda folder: passphrase_for(folder, passphrase_file))
    check_coordinator_works(choice.listen, files)
