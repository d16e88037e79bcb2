"""Everything that the README tells people to type is typed here, in one process: what starting one takes is another test's."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from securetm.leakage import audit_plans

from .cli.conftest import securetm, write_documents
from .leakage.conftest import write_plan

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@pytest.fixture
def here(context: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That folder is the current one."""
    monkeypatch.chdir(context)
    return context


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that is over in seconds under the name of the shipped one, which the slow suite carries out."""
    write_documents(tmp_path / "documents.jsonl", 60)
    small = write_plan(tmp_path / "quick.toml", tmp_path / "documents.jsonl", profiles=["open"], batch=2)
    named = audit_plans.named_toml
    monkeypatch.setattr(
        audit_plans,
        "named_toml",
        lambda folder, name, *more, **settings: small if name == "quick" else named(folder, name, *more, **settings),
    )


@pytest.mark.usefixtures("quick")
def test_the_commands(here: Path) -> None:
    commands = [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == 13
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "securetm"
        ended = securetm(*arguments)
        assert ended.code == 0, (command, ended.err)


def test_the_plan(here: Path) -> None:
    (plan,) = blocks("toml")
    (here / "plan.toml").write_text(plan, "utf-8")
    ended = securetm("run", "plan.toml", "--out", "runs/plan", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["parties"] == ["east", "north", "south", "west"]
    assert ended.json["rounds"] <= 40


def test_the_python(here: Path) -> None:
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    assert "topics.safetensors" in {path.name for path in here.iterdir()}


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"^make (\S+)", "\n".join(blocks("")), re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_every_file_that_is_named_exists() -> None:
    for name in re.findall(r"`([A-Z]+\.md|[a-z_]+/)`", README):
        assert (ROOT / name).exists(), name
