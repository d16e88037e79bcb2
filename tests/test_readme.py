"""Everything that the README tells people to type is typed here."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the documents that the README speaks of."""
    folder = tmp_path_factory.mktemp("readme")
    water, court = ["the river and the lake", "a boat on the lake"], ["the court and the judge", "an appeal to court"]
    texts = {"north": water, "south": court, "east": [*water, *court], "west": ["the judge on the boat", "a lake"]}
    lines = [json.dumps({"text": text, "party": party}) for party, said in texts.items() for text in said * 30]
    (folder / "notes.jsonl").write_text("\n".join(lines), "utf-8")
    words = sorted({word for said in texts.values() for text in said for word in text.split() if len(word) > 2})
    (folder / "words.txt").write_text("\n".join(words), "utf-8")
    (folder / "new.jsonl").write_text('{"text": "a judge on a boat"}\n', "utf-8")
    return folder


def securetm(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "securetm.cli.main", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def test_the_commands(desk: Path) -> None:
    commands = [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == 13
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "securetm"
        ended = securetm(arguments, desk)
        assert ended.returncode == 0, (command, ended.stderr)


def test_the_plan(desk: Path) -> None:
    (plan,) = blocks("toml")
    (desk / "plan.toml").write_text(plan, "utf-8")
    ended = securetm(["run", "plan.toml", "--out", "runs/plan", "--json"], desk)
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["parties"] == ["east", "north", "south", "west"]
    assert result["rounds"] <= 40


def test_the_python(desk: Path) -> None:
    (code,) = blocks("python")
    ended = subprocess.run([sys.executable, "-c", code], cwd=desk, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "topics.safetensors" in {path.name for path in desk.iterdir()}


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"^make (\S+)", "\n".join(blocks("")), re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_every_file_that_is_named_exists() -> None:
    for name in re.findall(r"`([A-Z]+\.md|[a-z_]+/)`", README):
        assert (ROOT / name).exists(), name
