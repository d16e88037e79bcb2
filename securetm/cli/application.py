"""The commands, in the order of `securetm --help`. main.py reports failures."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from securetm.version import __version__

COMMANDS = {  # each in its module of this package
    "choose": "choose",
    "run": "run",
    "sweep": "runs",
    **dict.fromkeys(("serve", "init", "join", "post", "health"), "federation"),
    "doctor": "operations.doctor",
    **dict.fromkeys(("backup", "restore"), "operations.backups"),
    "version": "operations.version",
    **dict.fromkeys(("topics", "transform", "adapt", "evaluate"), "models"),
    **dict.fromkeys(("runs", "compare"), "runs"),
    **dict.fromkeys(("explain", "compare-profiles", "check", "threats"), "profiles"),
    **dict.fromkeys(("audit", "report"), "audits"),
    "parts": "profiles",
    "budget": "budget",
    "keys": "keys",
    "corpus": "corpus",
}


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"securetm {__version__}")
        raise typer.Exit()


def _everything(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    shown: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Topic models trained across organisations that may not show each other their documents."""
    del debug, shown


@cache
def application(only: str = "") -> typer.Typer:
    """All commands; or one alone, where it is known which is meant: the others take longer to make than many a command."""
    app = typer.Typer(
        name="securetm",
        help="Topic models trained across organisations that may not show each other their documents.",
        epilog="Example: securetm explain open",
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_everything)
    for name in [only] if only in COMMANDS else COMMANDS:
        getattr(import_module(f"securetm.cli.{COMMANDS[name]}"), name.replace("-", "_")).add_to(app, "securetm")
    return app


@cache
def commands(only: str = "") -> Any:
    """The same, as what parses a command line."""
    return get_command(application(only))
