"""Which stream a command speaks on: results on standard output, progress and notes on standard error, JSON alone on its own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ..quick_part import quick
from .calculated import write_ledger
from .conftest import SMALL, Said, securetm

# each command, and what of its result must be on standard output
SHOWN = {
    "topics runs/demo": "top words",
    "transform runs/demo new.jsonl": "strongest topics",
    "explain masked": "the coordinator",
    "check open": "No gap",
    "check open --threat-model curious_coordinator": "sees only sums",
    "threats masked": "Every claim",
    "budget dp-sgd --documents 1000 --batch 100 --epochs 1 --noise 2 --delta 1e-5": "epsilon = ",
    "budget laplace --epsilon-per-word 8 --words 60": "epsilon = ",
    "budget ledger north.ledger": "north",
}


@pytest.mark.parametrize("command", quick(SHOWN, "transform runs/demo new.jsonl", "check open", "budget ledger north.ledger"))
def test_results_are_on_standard_output_and_json_stands_there_alone(command: str, demo: Said, here: Path) -> None:
    if not (here / "north.ledger").exists():
        write_ledger(here / "north.ledger", "one")
    said = securetm(*shlex.split(command))
    assert said.code in (0, 1), said.err
    assert SHOWN[command] in said.out
    assert SHOWN[command] not in said.err  # a slow computation shows a bar there
    for_programs = securetm(*shlex.split(command), "--json")
    assert json.loads(for_programs.out)
    assert SHOWN[command] in for_programs.err  # people at a terminal still see it


def test_a_run_shows_its_result_and_keeps_progress_apart(here: Path) -> None:
    said = securetm("run", "plan.toml", *SMALL, "--rounds", "1", "--profile", "open", "--out", "runs/streams")
    assert said.code == 0, said.err
    for shown in ("Topics of the shared model", "Quality", "from the parties", "Nothing is hidden", "Kept in"):
        assert shown in said.out
        assert shown not in said.err
    assert "training prodlda" in said.err
    assert "training prodlda" not in said.out


# ---- streams that end early, or cannot write every letter -----------------------------------------------------------


def piped(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    shell = ["bash", "-c", f"set -o pipefail; {shlex.quote(sys.executable)} -m securetm.cli.main {command}"]
    return subprocess.run(shell, capture_output=True, check=False, timeout=600, env={**os.environ, **environment})


@pytest.mark.slow
@pytest.mark.parametrize("more", ["", " --json"])
def test_a_reader_that_leaves_early_is_no_fault(more: str) -> None:
    said = piped(f"threats masked{more} | head -c 1")
    assert said.returncode in (0, 3)  # 0 where it all went out before the reader left
    for fault in (b"Traceback", b"Exception", b"securetm: error"):
        assert fault not in said.stderr


def test_a_stream_without_the_letters_is_written_all_the_same() -> None:
    told = piped("explain masked --json", PYTHONIOENCODING="ascii")
    assert told.returncode == 0
    assert json.loads(told.stdout.decode("ascii")) == securetm("explain", "masked", "--json").json
