"""`securetm doctor`: what could keep a member from taking part, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from securetm.cli.command import Output, command
from securetm.cli.options import PassphraseFile

_STYLES = {"good": "good", "bad": "danger", "unknown": "hint"}


@command("Say what could keep a member from taking part.", "homes/hospital-a")
def doctor(
    home: Annotated[
        Path | None, typer.Argument(metavar="[HOME]", help="The member's home; else the one in $XDG_DATA_HOME/securetm.")
    ] = None,
    courier: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where letters lie, if files are exchanged: looked at in place of a connection."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    *,
    out: Output,
) -> dict[str, Any]:
    """Looks at keys, permissions, clock, disk, entropy, versions, build, ledgers, proxies, and the way to the coordinator.

    Each line is good, bad or unknown, with what to do. It exits with 1 if one is bad. It reads no document and changes nothing;
    the coordinator is asked over the connection that a run would use.
    """
    from dataclasses import asdict

    from securetm.cli.passphrases import given_passphrase
    from securetm.credentials.homes import found_home
    from securetm.credentials.keys import keep_out_of_core_dumps
    from securetm.federation.doctor import BAD, examined
    from securetm.reports.document import Table, Words
    from securetm.reports.terminal import show

    keep_out_of_core_dumps()
    place = found_home(home)
    with out.busy("Looking at this member"):
        found = list(examined(place, given_passphrase(passphrase_file), courier))
    rows = tuple(
        (one.what, (Words(one.verdict, _STYLES[one.verdict]),), tuple(filter(None, (one.found, one.to_do)))) for one in found
    )
    show([Table(("what", "is", "found, and what to do"), rows, title=str(place), whole=(0, 1))], out.results)
    bad = [one.what for one in found if one.verdict == BAD]
    out.exit_code = 1 if bad else 0
    return {"home": str(place), "bad": bad, "findings": [asdict(one) for one in found]}
