"""What is refused, by name and with advice: `refused.md` holds commands and what they say, for people to read.

`WRITE_REFUSED=1 python -m pytest tests/cli/test_refused.py` writes it again.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from .conftest import Said, securetm

PAGE = Path(__file__).with_name("refused.md")
SECTIONS = dict(re.findall(r"^## (.+)\n\n((?:(?!## ).*\n)*)", PAGE.read_text("utf-8"), re.MULTILINE))


@pytest.fixture(scope="module")
def mistaken(demo: Said, workplace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in a folder that no other test writes to, with files that are not what they are given for."""
    assert demo.code == 0, demo.err
    place = tmp_path_factory.mktemp("mistaken")
    for name in ("documents.jsonl", "new.jsonl", "mine.jsonl", "plan.toml"):
        shutil.copy(workplace / name, place)
    shutil.copytree(workplace / "runs/demo", place / "runs/demo")
    (place / "records.jsonl").write_text('{"note": "river lake", "clinic": "north"}\n', "utf-8")
    (place / "bad.jsonl").write_text('{"text": "river", "person": ["ann"]}\n', "utf-8")
    dates = ("2026-01-01", "2026-01")
    (place / "months.jsonl").write_text("".join(f'{{"text": "the cat", "date": "{one}"}}\n' for one in dates), "utf-8")
    (place / "latin.txt").write_bytes("caf\xe9\nriver\n".encode("latin1"))
    (place / "nameless.toml").write_text("title = 'no name'\n", "utf-8")
    return place


def answered(command: str, place: Path) -> str:
    """The command and its letter: a line says what, and the last one what to do."""
    said = securetm(*shlex.split(command)[1:])
    assert (said.out, "Traceback" in said.err, "unexpected" in said.err) == ("", False, False), command
    letter = [line for line in said.err.replace(str(place), "PLACE").splitlines() if line.startswith("securetm: ")]
    assert letter[0].startswith("securetm: error: "), command
    assert letter[-1].startswith("securetm: hint: "), command
    if " --help" in letter[-1] and ": Invalid value: " not in letter[0]:  # the words are typer's, and go by its version
        letter[0] = "securetm: error: …"
    ended = [] if said.code == 2 else [f"ends with {said.code}"]
    return "\n".join([f"$ {command}", *(line.removeprefix("securetm: ") for line in letter), *ended, "", ""])


@pytest.mark.parametrize("section", SECTIONS)
def test_what_cannot_be_is_answered_in_a_sentence_and_a_hint(
    section: str, mistaken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mistaken)
    monkeypatch.setenv("XDG_CACHE_HOME", str(mistaken / "cache"))
    commands = re.findall(r"^\$ (.+)$", SECTIONS[section], re.MULTILINE)
    before = sorted(mistaken.rglob("*"))
    answers = "".join(answered(command, mistaken) for command in commands)
    assert sorted(mistaken.rglob("*")) == before
    if os.environ.get("WRITE_REFUSED"):
        text = PAGE.read_text("utf-8").replace(f"## {section}\n\n{SECTIONS[section]}", f"## {section}\n\n{answers}")
        PAGE.write_text(text.rstrip("\n") + "\n\n", "utf-8")
    else:
        assert answers.strip() == SECTIONS[section].strip()
