"""What goes wrong in a newcomer's first hour ends in a sentence that names it, and a hint at what to type instead."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..forking import command
from ..quick_part import quick
from .conftest import SMALL, Said, securetm
from .test_cli import told

LONG = "a" * 1_000_000  # a path of a megabyte


# ---- names -----------------------------------------------------------------------------------------------------------


# ---- plans and corpora -----------------------------------------------------------------------------------------------


# ---- paths and disks -------------------------------------------------------------------------------------------------

AT_LENGTH = {
    "corpus": ["run", "--corpus", f"{LONG}.jsonl"],
    "vocabulary": ["run", "--vocabulary", LONG],
    "out": ["run", "plan.toml", "--out", LONG],
    "resume": ["run", "--resume", LONG],
    "new documents": ["transform", "runs/demo", LONG],
    "profile": ["explain", f"{LONG}.toml"],
    "stop words": ["run", "plan.toml", "--set", f"tokeniser.stop_words={LONG}"],
}


@pytest.mark.parametrize("what", AT_LENGTH)
def test_a_path_of_a_megabyte_is_a_misuse_in_few_words(what: str, demo: Said, here: Path) -> None:
    said = securetm(*AT_LENGTH[what])
    told(said, 2, "")
    assert "unexpected" not in said.err
    assert len(said.err) < 8_000


@pytest.mark.parametrize(
    "size", [20_000, pytest.param(4_000, marks=pytest.mark.slow), pytest.param(60_000, marks=pytest.mark.slow)]
)
def test_a_full_disk_is_called_full_and_no_store_is_called_damaged(size: int, here: Path, tmp_path: Path) -> None:
    """No file may grow beyond that size: writes fail as on a full disk."""
    run = ("run", "plan.toml", *SMALL, "--profile", "open", "--out", str(tmp_path / "run"))
    said = Said(*command(*run, limits={resource.RLIMIT_FSIZE: size}))
    told(said, 2, "cannot be written")
    assert "damaged" not in said.err.split("hint")[0]
    assert "room" in said.err


@pytest.mark.slow
def test_results_that_cannot_be_written_are_told_so() -> None:
    command = f"{sys.executable} -m securetm.cli.main explain open > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2, done.stderr
    assert "securetm: error: standard output cannot be written: No space left on device" in done.stderr
    assert "Exception" not in done.stderr


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------

EARLY = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Pressed(MetaPathFinder):  # somebody presses Ctrl-C while this module is being loaded
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Pressed())
sys.argv = ["securetm", "run", "--rounds", "1"]
from securetm.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "module", quick(["typer", "rich.console", "securetm.federation.folder", "numpy", "securetm.cli.run"], "numpy")
)
def test_ctrl_c_in_the_first_seconds_says_a_sentence(module: str, tmp_path: Path) -> None:
    code = EARLY.format(module=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600, cwd=tmp_path)
    assert "securetm: error: interrupted" in done.stderr
    assert "securetm: hint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 3


@pytest.mark.slow
def test_ctrl_c_while_documents_are_read_says_a_sentence(tmp_path: Path) -> None:
    pipe = tmp_path / "endless.jsonl"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "securetm.cli.main", "run", "--corpus", str(pipe), "--out", str(tmp_path / "run")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with process, pipe.open("w", encoding="utf-8") as feeding:  # opened by both: the run is reading
        feeding.write('{"text": "river"}\n')
        feeding.flush()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert "securetm: error: interrupted" in said
    assert process.returncode == 3


# ---- more that was typed by mistake ------------------------------------------------------------------------------------
