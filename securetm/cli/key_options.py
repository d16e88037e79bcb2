"""Options that several commands about keys and rosters take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="The home of the keys; else the one in $XDG_DATA_HOME/securetm that is meant."),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file with the keys' passphrase; else $SECURETM_PASSPHRASE, or the terminal asks."),
]
NewPassphrase = Annotated[bool, typer.Option("--passphrase", help="Ask for a passphrase that protects new keys.")]
RosterArgument = Annotated[Path, typer.Argument(help="The file of the roster.")]
RosterOption = Annotated[Path, typer.Option(metavar="FILE", help="The file of the roster that is changed.")]
