"""The commands, in the order of `securetm --help`. main.py reports failures."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from securetm.version import __version__

COMMANDS = {  # the module of this package that has it, and its line in the list, for which no module is loaded
    "choose": ("choose", "Choose a profile by six questions."),
    "run": ("run", "Train a federation on this machine."),
    "sweep": ("runs", "Train once for each value of a setting."),
    "serve": ("federation", "Coordinate separate organisations."),
    "init": ("federation", "Write the files of a federation to try."),
    "join": ("federation", "Take part in a federation with your documents."),
    "post": ("federation", "Make one pass of a federation by courier."),
    "health": ("federation", "Say whether a member's process works."),
    "doctor": ("operations", "Say what could keep a member from taking part."),
    "backup": ("operations", "Copy a home into one encrypted file."),
    "restore": ("operations", "Make a home of such a file."),
    "version": ("operations", "Say which build this is, and whether it was changed."),
    "topics": ("models", "Show the topics of a finished run."),
    "transform": ("models", "Find the topics of new documents."),
    "adapt": ("models", "Adapt a model to your own documents."),
    "evaluate": ("models", "Measure the quality of topics."),
    "runs": ("runs", "List runs, or delete them."),
    "compare": ("runs", "Show runs side by side."),
    "explain": ("profiles", "Say who sees what under a profile."),
    "compare-profiles": ("profiles", "Show profiles side by side."),
    "check": ("profiles", "Name every gap of a profile."),
    "threats": ("profiles", "Say what is promised against each adversary, what tried it, and what came out."),
    "audit": ("audits", "Attack a run and say what leaked."),
    "report": ("audits", "Write the page to sign about a run, or show an audit again."),
    "parts": ("profiles", "List every part that can be named."),
    "budget": ("budget", "Compute what privacy costs."),
    "keys": ("keys", "Make and check keys, certificates and rosters."),
    "corpus": ("corpus", "Keep a corpus beyond memory on disk."),
}
LISTED = ("--help", "-h")


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
    del debug, shown


@cache
def application(only: str = "") -> typer.Typer:
    """All commands; or one alone, where it is known which is meant, or their names: to make all takes long."""
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
        module, summary = COMMANDS[name]
        if only in LISTED:
            app.command(name, short_help=summary)(lambda: None)
        else:
            getattr(import_module(f"securetm.cli.{module}"), name.replace("-", "_")).add_to(app, "securetm", summary)
    return app


@cache
def commands(only: str = "") -> Any:
    """The same, as what parses a command line."""
    return get_command(application(only))
