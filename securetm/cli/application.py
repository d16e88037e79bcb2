"""The commands, in the order of `securetm --help`. main.py reports failures."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from securetm.cli.audits import audit, report
from securetm.cli.budget import budget
from securetm.cli.choose import choose
from securetm.cli.corpus import corpus
from securetm.cli.federation import health, init, join, post, serve
from securetm.cli.keys import keys
from securetm.cli.models import adapt, evaluate, topics, transform
from securetm.cli.operations.backups import backup, restore
from securetm.cli.operations.doctor import doctor
from securetm.cli.operations.version import version
from securetm.cli.profiles import check, compare_profiles, explain, parts, threats
from securetm.cli.run import run
from securetm.cli.runs import compare, runs, sweep
from securetm.version import __version__

app = typer.Typer(
    name="securetm",
    help="Topic models trained across organisations that may not show each other their documents.",
    epilog="Example: securetm explain open",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    *(choose, run, sweep, serve, init, join, post, health, doctor, backup, restore, version),
    *(topics, transform, adapt, evaluate, runs, compare),
    *(explain, compare_profiles, check, threats, audit, report, parts),
    *(budget, keys, corpus),
)
for one in COMMANDS:
    one.add_to(app, "securetm")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"securetm {__version__}")
        raise typer.Exit()


@app.callback()
def _everything(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    shown: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Topic models trained across organisations that may not show each other their documents."""
    del debug, shown


@cache
def commands() -> Any:
    """All commands, as what parses a command line. To make them takes longer than many a command."""
    return get_command(app)
