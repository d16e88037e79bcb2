"""Every documented option of every command of `securetm budget` is tried: an option that only crashes is found here.

What is tried is compared with the commands themselves, so that a new option without a trial fails.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.main import get_command

from securetm.cli.application import application

from .calculated import budget, write_ledger

PEOPLE = "--documents 30000 --persons 6000 --documents-per-person 9 --unit person"
COUNTED = "--corpus FOLDER/notes.csv --person patient"
SOME = "--batch 300 --epochs 2 --delta 1e-6"
TRIALS: Mapping[str, tuple[str, ...]] = {
    "": (
        f"--html FOLDER/page.html {PEOPLE} --delta 1e-6 --noise 4 --rounds 4 --parties 6 --missing 1 --colluding 1 --json",
        "--html FOLDER/page.html --epsilon 3",
    ),
    "dp-sgd": (
        f"{SOME} --noise 2 {PEOPLE} --sampling poisson --tokens 300 --parties 5 --missing 1 --colluding 1 --json",
        f"--batch 20 --epochs 2 --delta 1e-4 --epsilon 3 {COUNTED} --parties 5 --threshold 4 --html FOLDER/page.html",
    ),
    "solve": (
        f"--for noise --epsilon 3 {SOME} {PEOPLE} --sampling poisson --tokens 300 --parties 5 --missing 1 --colluding 1 --json",
        f"--for epochs --epsilon 3 --batch 20 --delta 1e-4 --noise 3 {COUNTED} --parties 5 --threshold 4",
        "--for noise --epsilon 3 --batch 20 --epochs 2 --delta 1e-4 --documents 900 --html FOLDER/page.html",
    ),
    "laplace": (
        "--epsilon-per-word 8 --releases 2 --words 60 --delta 1e-6 --json",
        "--scale 0.5 --words 60 --html FOLDER/page.html",
    ),
    "distributed": (
        f"--parties 5 --noise 2 --rounds 3 --delta 1e-6 --missing 1 --colluding 1 --rate 1 --dimension 1000 --l2 4096 {PEOPLE}"
        " --distribution skellam --json",
        f"--parties 5 --noise 9 --rounds 3 --delta 1e-4 --threshold 4 {COUNTED} --html FOLDER/page.html",
    ),
    "compare": (
        f"{SOME} --noise 2 --parties 5 --missing 1 --colluding 1 --dimension 1000 --l2 4096 {PEOPLE} --json",
        f"--batch 20 --epochs 2 --delta 1e-4 --epsilon 3 --threshold 4 {COUNTED} --html FOLDER/page.html",
    ),
    "profile": (
        f"dp-central --rounds 2 --vocabulary-size 200 --model lda-vi --parties 5 --vocabulary english --document-length 30"
        f" {PEOPLE} --epsilon 3 --delta 1e-6 --missing 0 --start plain --json",
        "dp-distributed --documents 30000 --rounds 2 --noise 5 --delta 1e-6 --missing 1 --colluding 2",
        f"dp-central --delta 1e-4 {COUNTED} --html FOLDER/page.html",
    ),
    "forecast": (
        f"{PEOPLE} --profile dp-central --epsilon 3 --delta 1e-6 --parties 5 --model lda-vi --start plain --words 500"
        " --topics 20 --rounds 3 --length 30 --vocabulary english --json",
        "--documents 30000 --document-length 30 --general-list",
        "--documents 30000",
    ),
    "plan": (
        f"--profile dp-central --years 2 --runs-per-year 1 --audits-per-year 1 --runs-per-audit 1 --retire-after 1"
        f" --words public --epsilon 8 --delta 1e-6 --rounds 2 --model lda-vi --vocabulary-size 200 {PEOPLE} --parties 5"
        " --missing 0 --document-length 30 --json",
        "--profile dp-distributed --years 1 --noise 9 --words public --rounds 1 --vocabulary-size 200 --colluding 2"
        " --delta 1e-6 --html FOLDER/page.html",
        "--profile dp-central --years 1 --words public --rounds 1 --vocabulary-size 200 --ledger FOLDER/north.ledger",
    ),
    "series": ("FOLDER/north.ledger --per-year 2 --json --html FOLDER/page.html",),
    "ledger": ("FOLDER/north.ledger --json --html FOLDER/page.html", "FOLDER/north.ledger --allow 9"),
}
SLOW = ("compare", "solve", "dp-sgd", "distributed", "plan", "profile")  # which compose many sampled rounds
LINES = [(command, line) for command, lines in TRIALS.items() for line in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ledger, and a corpus with a column of persons."""
    write_ledger(tmp_path / "north.ledger", "one")
    rows = [f"fever and cough of the left lung {n},p{n // 3}" for n in range(90)]
    (tmp_path / "notes.csv").write_text("text,patient\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def documented() -> dict[str, set[str]]:
    """The options of each command, one spelling of each, as the commands themselves have them."""
    group = get_command(application()).commands["budget"]  # type: ignore[attr-defined]
    commands = {"": group, **group.commands}
    options = {name: [p for p in command.params if p.param_type_name == "option"] for name, command in commands.items()}
    return {name: {"/".join(sorted(p.opts)) for p in known if p.opts != ["--help"]} for name, known in options.items()}


def test_every_documented_option_is_tried() -> None:
    for command, options in documented().items():
        tried = set(re.findall(r"--[\w-]+", " ".join(TRIALS[command])))
        assert {one for one in options if not tried & set(one.split("/"))} == set(), command


@pytest.mark.parametrize(
    ("command", "line"),
    [
        pytest.param(command, line, id=f"{command or 'page'}-{n}", marks=[pytest.mark.slow] * (command in SLOW))
        for n, (command, line) in enumerate(LINES)
    ],
)
def test_the_option_does_what_it_says_or_refuses_by_name(command: str, line: str, folder: Path) -> None:
    said = budget(f"{command} {line}".replace("FOLDER", shlex.quote(str(folder))))
    assert said.code == 0, said.err
    assert "unexpected" not in said.err
