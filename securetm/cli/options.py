"""Options and arguments that several commands take, and what a shell offers behind them (`securetm … <Tab>`).

Completion reads names of files only. Where it has nothing to offer, the shell offers files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from securetm.settings import require

RUNS = Path("runs")
ARGUMENT = object()  # stands in the annotation of what is no option
COLUMN, FILE = {"metavar": "COLUMN"}, {"metavar": "FILE"}
_RECORDS = ("run.json", "report.json")  # of a run here, and of what a party has of one


def profiles(incomplete: str) -> list[str]:
    from securetm.plans.profiles import profile_names

    return _begun(profile_names(), incomplete)


def models(incomplete: str) -> list[str]:
    """The models of this package and of those that are installed."""
    from securetm.models import MODELS

    return _begun(MODELS.names(), incomplete)


def threat_models(incomplete: str) -> list[str]:
    from securetm.threats import threat_model_names

    return _begun(threat_model_names(), incomplete)


def run_folders(incomplete: str) -> list[str]:
    """The folders of runs in `runs`, or in the folder that was typed so far."""
    typed = Path(f"{incomplete}x").parent if incomplete else Path()
    places = (typed, RUNS) if typed == Path() else (typed,)
    return _begun([str(folder) for place in places for folder in _runs_in(place)], incomplete)


def run_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the runs in the folder that holds them."""
    place = ctx.params.get("place") or RUNS
    return _begun([folder.name for folder in _runs_in(Path(place))], incomplete) or run_folders(incomplete)


def _runs_in(place: Path) -> list[Path]:
    try:
        there = [*sorted(place.iterdir()), *sorted(place.glob("data/*/runs/*"))]  # the second in a party's home
        return [folder for folder in there if any((folder / name).is_file() for name in _RECORDS)]
    except OSError:
        return []


def _begun(names: Any, incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def check_courier(courier: str | None) -> None:
    """Refuses an empty --courier, as an unset variable makes it: its letters would lie in the current folder."""
    named = courier is None or bool(courier.strip())
    instead = "name the folder or store of the letters; where a variable names it, the variable is empty or not set"
    require(named, "", "--courier", courier, "must name a folder or a store", instead=instead)


PROFILES, MODELS, THREATS, FOLDERS, NAMES = (
    {"autocompletion": offered} for offered in (profiles, models, threat_models, run_folders, run_names)
)
Run = Annotated[Path, ARGUMENT, "The folder of a finished run.", FOLDERS]
Text = Annotated[str | None, "The column of the text, unless it is called so.", COLUMN]
ProfileName = Annotated[str, ARGUMENT, "A profile's name, or a file ending in .toml.", PROFILES]
Settings = Annotated[list[str] | None, "--set", "Any setting of a plan, as section.name=value."]
Home = Annotated[
    Path | None, "The home of the keys; else the one in $XDG_DATA_HOME/securetm that is meant.", {"metavar": "FOLDER"}
]
PassphraseFile = Annotated[
    Path | None, "A file with the keys' passphrase; else $SECURETM_PASSPHRASE, or the terminal asks.", FILE
]
