"""Lists the commands and their shared options. main.py reports failures."""

from __future__ import annotations

from typing import Annotated

import typer

from securetm.cli import (
    audit_command,
    bench_commands,
    budget_commands,
    model_commands,
    parts_command,
    profile_commands,
    report_command,
    run_command,
    threats_command,
)
from securetm.version import __version__

app = typer.Typer(
    name="securetm",
    help="Topic models trained across organisations that may not show each other their documents.",
    epilog="Example: securetm explain open",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for commands in (
    run_command,
    model_commands,
    profile_commands,
    threats_command,
    bench_commands,
    budget_commands,
    audit_command,
    report_command,
    parts_command,
):
    commands.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"securetm {__version__}")
        raise typer.Exit()


@app.callback()
def _everything(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Topic models trained across organisations that may not show each other their documents."""
    del debug, version
