"""The command line: what each command answers, in JSON too, and every failure a letter with an exit code."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from securetm.cli.command import Output

from .conftest import SMALL, Said, securetm

COMMANDS = (
    "choose",
    "run",
    "sweep",
    "serve",
    "init",
    "join",
    "post",
    "health",
    "doctor",
    "backup",
    "restore",
    "version",
    "topics",
    "transform",
    "adapt",
    "evaluate",
    "runs",
    "compare",
    "explain",
    "compare-profiles",
    "check",
    "threats",
    "audit",
    "report",
    "parts",
    "budget",
    "keys",
    "corpus",
)
REMOTE = (
    "serve",
    "join",
    "post",
    "health",
    "doctor",
    "backup",
    "restore",
)  # their examples need a federation: docs/how-to has them with one


# ---- help and examples ---------------------------------------------------------------------------------------------


def example_of(command: str) -> str:
    """The example at the end of a command's help."""
    lines = [line.strip() for line in securetm(command, "--help").out.strip().splitlines()]
    last = next(place for place in reversed(range(len(lines))) if lines[place].startswith("Example: "))
    return " ".join(lines[last:]).removeprefix("Example: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_a_sentence_and_ends_with_an_example(command: str) -> None:
    said = securetm(command, "--help")
    assert said.code == 0
    paragraphs = [" ".join(part.split()) for part in said.out.strip().split("\n\n")]
    assert paragraphs[0].startswith(f"Usage: securetm {command}")
    assert re.match(r"[A-Z].*[^.]\.$", paragraphs[1]), paragraphs[1]
    assert paragraphs[-1].startswith(f"Example: securetm {command} ")


def test_the_help_of_all_names_every_command() -> None:
    said = securetm("--help")
    assert said.code == 0
    assert re.findall(r"^  ([a-z][a-z-]*)  ", said.out, re.MULTILINE) == list(COMMANDS)
    assert said.out.strip().splitlines()[-1].strip() == "Example: securetm explain open"


def test_without_a_command_the_help_is_shown() -> None:
    assert securetm() == securetm("--help")


def test_version() -> None:
    assert re.fullmatch(r"securetm \d+\.\d+\.\d+\n", securetm("--version").out)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in ("run", "sweep", "audit", "report", "init", *REMOTE)])
def test_every_example_does_what_it_says(command: str, demo: Said, here: Path) -> None:
    said = securetm(*shlex.split(example_of(command))[1:])
    assert said.code == 0, said.err
    assert said.out
    assert "error" not in said.err


# ---- run -----------------------------------------------------------------------------------------------------------


def test_run_says_what_the_contract_promises(demo: Said) -> None:
    assert demo.code == 0, demo.err
    result = demo.json
    assert result["run"] == "demo"
    assert result["directory"] == "runs/demo"
    assert (result["model"], result["profile"], result["rounds"]) == ("prodlda", "masked", 6)
    assert result["parties"] == ["centre", "east", "north", "south", "west"]
    assert [len(topic) for topic in result["topics"]] == [10, 10, 10]
    assert all(isinstance(word, str) for topic in result["topics"] for word in topic)
    assert {"npmi", "diversity", "held_out"} <= result["quality"].keys()
    for name in result["parties"]:
        assert {"npmi", "diversity", "held_out"} <= result["alone"][name].keys()
    assert [spent["party"] for spent in result["spent"]] == result["parties"]
    assert all(spent.keys() >= {"unit", "epsilon", "delta"} for spent in result["spent"])
    assert result["seconds"] > 0
    assert result["bytes_up"] > 0
    assert result["bytes_down"] > 0


def test_text_without_full_stops_is_pointed_out(workplace: Path, here: Path) -> None:
    rows = [f"{' '.join(f'word{(row + place) % 90}' for place in range(80))},north{row % 5}" for row in range(40)]
    (workplace / "long.csv").write_text("text,party\n" + "\n".join(rows), "utf-8")
    long = ["run", "--corpus", str(workplace / "long.csv"), "--model", "sentence-lda", "--rounds", "1", "--profile", "open"]
    assert "without full stops" in securetm(*long, "--topics", "3").err.replace("\n", " ")
    assert "without full stops" not in securetm(*long, "--topics", "3", "--set", "model.longest=10").err.replace("\n", " ")


def test_resuming_a_finished_run_returns_its_result(demo: Said, here: Path) -> None:
    said = securetm("run", "--resume", "runs/demo", "--json")
    assert said.code == 0, said.err
    assert said.json == demo.json


@pytest.mark.parametrize(
    "more", [["plan.toml"], ["--rounds", "9"], ["--out", "elsewhere"], ["--set", "seed=4"], ["--record"], ["--seed", "4"]]
)
def test_a_resumed_run_takes_no_other_settings(more: list[str], demo: Said, here: Path) -> None:
    told(securetm("run", "--resume", "runs/demo", *more), 2, "goes on with its own plan")


# ---- the other commands --------------------------------------------------------------------------------------------


def test_topics(demo: Said, here: Path) -> None:
    found = securetm("topics", "runs/demo", "--words", "4", "--json").json
    topics = [topic[:4] for topic in demo.json["topics"]]
    assert found == {"run": "demo", "model": "prodlda", "topics": topics, "labels": {}, "above_noise": None}


def test_transform(demo: Said, here: Path) -> None:
    found = securetm("transform", "runs/demo", "new.jsonl", "--text", "text", "--json").json
    assert (found["run"], found["file"], len(found["documents"])) == ("demo", "new.jsonl", 15)
    assert all(len(row) == 3 and sum(row) == pytest.approx(1, abs=1e-4) for row in found["documents"])


def test_transform_counts_the_documents_of_which_it_knows_no_word(demo: Said, here: Path, tmp_path: Path) -> None:
    """The table shows the first twenty documents, so a sentence counts all; JSON says of each how many words are known."""
    texts = ["a boat on the river, a boat on the lake"] * 21 + ["quux xyzzy"]
    late = tmp_path / "late.jsonl"  # not among the files of all tests, which hints speak of
    late.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    said = securetm("transform", "runs/demo", str(late), "--json")
    assert "1 of 22 documents has no word that the model knows" in " ".join(said.err.split())
    assert said.json["known_words"] == [4] * 21 + [0]
    assert said.json["without_known_words"] == [21]
    assert "no word that the model knows" not in securetm("transform", "runs/demo", "new.jsonl", "--text", "text").err


def test_numbers_that_are_none_are_null_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=True).document({"a": [float("nan"), float("inf"), 1.5], "b": (None, True)})
    assert json.loads(capsys.readouterr().out) == {"a": [None, None, 1.5], "b": [None, True]}


# ---- failures ------------------------------------------------------------------------------------------------------


def told(said: Said, code: int, sentence: str) -> None:
    """A letter: one line that says what, one that says what to do; nothing on stdout and no traceback."""
    assert said.code == code, said.err
    assert said.out == ""
    assert "Traceback" not in said.err
    letter = [line for line in said.err.splitlines() if line.startswith("securetm: ")]
    assert len(letter) == 2, said.err
    assert letter[0].startswith("securetm: error: ")
    assert sentence in letter[0]
    assert re.match(r"securetm: hint: \S", letter[1])


def test_a_damaged_run_exits_3(demo: Said, here: Path) -> None:
    damaged = Path("runs/damaged")
    damaged.mkdir(0o700, parents=True)
    (damaged / "run.json").touch(0o600)
    (damaged / "run.json").write_text('{"plan": ', encoding="utf-8")
    told(securetm("run", "--resume", str(damaged)), 3, "run.json is damaged")
    (damaged / "run.json").write_bytes(Path("runs/demo/run.json").read_bytes())
    told(securetm("run", "--resume", str(damaged)), 3, "kept.json is not as its run wrote it")


def test_a_fault_of_ours_exits_3_and_asks_for_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the word is river")

    monkeypatch.setattr("securetm.federation.soundness.check", broken)
    said = securetm("check", "open")
    told(said, 3, "unexpected: ZeroDivisionError")
    assert "river" not in said.err  # what is in a fault may be out of a document


def test_debug_shows_the_traceback_and_keeps_the_exit_code() -> None:
    said = securetm("explain", "magic", "--debug")
    assert said.code == 2
    assert "Traceback (most recent call last)" in said.err
    assert securetm("--debug", "explain", "magic").code == 2


# ---- in a process of its own ---------------------------------------------------------------------------------------


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "securetm.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_the_command_as_a_process() -> None:
    wrong = process("explain", "magic")
    told(Said(wrong.returncode, wrong.stdout, wrong.stderr), 2, "no profile called 'magic'")


def test_the_danger_of_a_profile_is_said(workplace: Path, tmp_path: Path) -> None:
    said = securetm("run", str(workplace / "plan.toml"), "--profile", "open", *SMALL, "--out", str(tmp_path / "open"))
    assert said.code == 0
    assert "Nothing is hidden" in said.out
