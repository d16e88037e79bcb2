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


def advised(said: Said, code: int, sentence: str, hint: str) -> None:
    told(said, code, sentence)
    advice = next(line for line in said.err.splitlines() if line.startswith("securetm: hint: "))
    assert hint in advice, advice
    assert len(said.err) < 4_000


# ---- names -----------------------------------------------------------------------------------------------------------

MEANT = {
    "profile": (["explain", "maskd"], "masked"),
    "profile of a run": (["run", "--profile", "dp-distibuted"], "dp-distributed"),
    "model": (["run", "--model", "prodLDA"], "prodlda"),
    "setting": (["run", "--set", "model.topcis=3"], "n_topics"),
    "partition": (["run", "--partition", "colum"], "column"),
    "threat model": (["check", "open", "--threat-model", "curious_cordinator"], "curious_coordinator"),
    "audit plan": (["audit", "quik"], "quick"),
    "option": (["run", "--toppics", "3"], "--topics"),
    "command": (["explian", "open"], "explain"),
    "sought number": (["budget", "solve", "--for", "nois", "--epsilon", "3", "--documents", "9", "--delta", "1e-3"], "noise"),
    "plan": (["run", "pln.toml"], "plan.toml"),
    "corpus": (["run", "--corpus", "document.jsonl"], "documents.jsonl"),
}


@pytest.mark.parametrize("what", MEANT)
def test_an_unknown_name_is_answered_with_the_one_that_was_meant(what: str, here: Path) -> None:
    arguments, meant = MEANT[what]
    said = securetm(*arguments)
    assert said.code == 2, said.err
    assert "did you mean" in said.err.lower(), said.err
    assert meant in said.err


# ---- plans and corpora -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["documents.jsonl", "runs"])
def test_documents_in_the_place_of_a_plan_are_told_from_one(name: str, demo: Said, here: Path) -> None:
    advised(securetm("run", name), 2, f"the argument PLAN in securetm run is {name}; it holds documents", f"--corpus {name}")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--corpus", "documents.jsonl", "--partition", "column", "--parties", "3"], "`parties` in [corpus] is 3"),
        (["--corpus", "documents.jsonl", "--partition", "equal", "--set", "corpus.alpha=2"], "`alpha` in [corpus] is '2'"),
        (["--partition", "column"], "`partition` in [corpus] is 'column'"),
        (["--text", "body"], "`text` in [corpus] is 'body'"),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(more: list[str], sentence: str, here: Path) -> None:
    advised(securetm("run", *more), 2, sentence, "")
    assert "means nothing" in securetm("run", *more).err


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

AWKWARD = {
    "a budget without one": (["--epsilon", "8"], "profile masked has no privacy budget (--profile dp-distributed", "--epsilon"),
    "no form": (["--set", "=3"], "the option --set is =3; it must name a setting and its value", "--set training.rounds=20"),
    "no topics": (["--topics", "0"], "`n_topics` in [model] lda is 0; it must be", "--topics"),
    "a model of many names": (["--set", "model.name.x=lda"], "`name` in [model] is {'x': 'lda'}; it must be a text", "--model"),
    "words in latin1": (["--vocabulary", "latin.txt"], "`file` in [vocabulary] is latin.txt; it is not UTF-8", "--vocabulary"),
    "a language without a list": (["--vocabulary", "klingon"], "is klingon; it is neither a language of which", "--vocabulary"),
    "a device of words": (["--vocabulary", "/dev/zero"], "is /dev/zero; it cannot be read: it is no ordinary", "--vocabulary"),
    "a folder of words": (
        ["--vocabulary", "runs"],
        "`file` in [vocabulary] is runs; it cannot be read: Is a directory",
        "--vocabulary",
    ),
    "a file to write into": (
        ["--out", "plan.toml"],
        "plan.toml is a file, and a folder is wanted",
        "--out",
    ),
}


@pytest.mark.parametrize("what", AWKWARD)
def test_what_was_typed_is_named_in_the_hint(what: str, demo: Said, here: Path) -> None:
    more, sentence, hint = AWKWARD[what]
    (here / "latin.txt").write_bytes("caf\xe9\nriver\n".encode("latin1"))
    advised(securetm("run", "--corpus", "documents.jsonl", *more), 2, sentence, hint)
