"""Lists the commands and their shared options. main.py reports failures."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from securetm.cli import budget_commands, corpus_commands, keys_commands
from securetm.cli.adapt_command import adapt
from securetm.cli.audit_command import audit
from securetm.cli.choose_command import choose
from securetm.cli.evaluate_command import evaluate
from securetm.cli.health_command import health
from securetm.cli.init_command import init
from securetm.cli.join_command import join
from securetm.cli.model_commands import topics, transform
from securetm.cli.profile_commands import check, compare_profiles, explain, parts, threats
from securetm.cli.report_command import report
from securetm.cli.run_command import run
from securetm.cli.runs_commands import compare, runs
from securetm.cli.serve_command import serve
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
for command, summary, example in (
    (
        choose,
        "Choose a profile by six questions.",
        "--per-person 0 --looks nobody --parties 5 --documents 900 --purpose explore",
    ),
    (run, "Train a federation on this machine.", "--rounds 20 --topics 5"),
    (serve, "Coordinate separate organisations.", "plan.toml"),
    (init, "Write the files of a federation to try.", "trial"),
    (join, "Take part in a federation with your documents.", "PARTY.toml --dry-run"),
    (health, "Say whether a member's process works.", "plan.toml"),
    (topics, "Show the topics of a finished run.", "runs/demo --words 8"),
    (transform, "Find the topics of new documents.", "runs/demo new.jsonl --json"),
    (adapt, "Adapt a model to your own documents.", "runs/demo --corpus mine.jsonl --out mine"),
    (evaluate, "Measure the quality of topics.", "runs/demo --json"),
    (runs, "List runs, or delete them.", "--sort perplexity"),
    (compare, "Show runs side by side.", "demo"),
    (explain, "Say who sees what under a profile.", "open"),
    (compare_profiles, "Show profiles side by side.", "masked dp-distributed"),
    (check, "Name every gap of a profile.", "open --model prodlda"),
    (threats, "Say what is promised against each adversary, what tried it, and what came out.", "masked"),
    (audit, "Attack a run and say what leaked.", "quick --html audit.html"),
    (report, "Write the page to sign about a run, or show an audit again.", "runs/demo --html audit.html"),
    (parts, "List every part that can be named.", "--json"),
):
    app.command(short_help=summary, epilog=f"Example: securetm {command.__name__.replace('_', '-')} {example}")(command)
budget_commands.register(app)
keys_commands.register(app)
corpus_commands.register(app)


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


@cache
def commands() -> Any:
    """All commands, as what parses a command line. To make them takes longer than many a command."""
    return get_command(app)
