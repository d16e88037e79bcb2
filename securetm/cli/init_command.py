"""`securetm init`: writes the files of a federation for a trial on one machine, and says what to type next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from securetm.cli import completion
from securetm.cli.json_output import Json, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from securetm.trial.files import TrialFolder


def init(
    folder: Annotated[Path, typer.Argument(help="A folder that is empty or not there yet.")] = Path("trial"),
    profile: Annotated[
        str, typer.Option(help="Privacy profile; see `securetm explain`.", autocompletion=completion.profiles)
    ] = "masked",
    rounds: Annotated[int, typer.Option(min=1, max=100_000, help="Most training rounds.")] = 40,
    host: Annotated[
        str, typer.Option(help="Where parties reach the coordinator; this machine, unless it is named.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the coordinator; 0: one that is free now.")] = 0,
    run: Annotated[bool, typer.Option("--run", help="Run it, too: six processes, beside a simulation of the same.")] = False,
    json: Json = False,
) -> None:
    """Writes a plan, five parties with documents, keys and a signed roster: a federation to try on this machine.

    The documents are docstrings of installed packages. Change the files for a federation of your own.
    """
    from securetm.reports.terminal import Bars, results, screen
    from securetm.trial.files import make_trial

    with Bars(screen()) as bars:
        trial = make_trial(folder, profile, rounds, bars, host=host, port=port)
    facts = {"folder": str(trial.path), "parties": trial.parties, "commands": trial.commands}
    if run:
        facts |= _run(trial, results(json))
    else:
        _say_what_next(trial, results(json))
    if json:
        print_json(facts)


def _run(trial: TrialFolder, to: Console) -> dict[str, Any]:
    """Runs the trial as a simulation and as processes, and shows what came of it."""
    from securetm.reports.statement.write import write_release
    from securetm.reports.terminal import Bars, screen
    from securetm.trial.processes import SIMULATION, run_processes, run_simulation, same_models
    from securetm.trial.screen import live, show_ended

    with Bars(screen()) as bars:
        simulated = run_simulation(trial, bars)
    with live(screen()) as show:
        seconds = run_processes(trial, show)
    ended = same_models(trial, simulated, seconds)
    write_release(trial.path / SIMULATION)
    show_ended(ended, to)
    return {"model": ended.model, "copies": ended.copies, "seconds": round(seconds, 1), "run": str(trial.run)}


def _say_what_next(trial: TrialFolder, to: Console) -> None:
    whose = f"A coordinator and {len(trial.parties)} parties with documents are in {trial.path}."
    to.print(f"{whose} Type each line in a terminal of its own:", markup=False)
    for command in trial.commands:
        to.print(f"  securetm {shlex.join(command)}", markup=False, soft_wrap=True)
