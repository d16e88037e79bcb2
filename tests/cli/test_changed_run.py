"""A run whose words were changed or cut is refused by every command that reads it, with the name of the file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Said, securetm

READING = (
    ("topics", "runs/changed"),
    ("transform", "runs/changed", "new.jsonl"),
    ("run", "--resume", "runs/changed"),
)


@pytest.fixture
def changed(demo: Said, here: Path) -> Path:
    """A copy of a finished run, to be changed."""
    path = Path("runs/changed")
    shutil.rmtree(path, ignore_errors=True)
    return Path(shutil.copytree("runs/demo", path))


def swapped(words: list[str]) -> list[str]:
    return words[::-1]


def cut(words: list[str]) -> list[str]:
    return words[:-5]


@pytest.mark.parametrize("harm", [swapped, cut])
def test_topics_are_never_named_by_other_words(harm: Callable[[list[str]], list[str]], changed: Path) -> None:
    path = changed / "coordinator/vocabulary.txt"
    path.write_text("\n".join(harm(path.read_text("utf-8").split("\n"))), "utf-8")
    for command in READING:
        said = securetm(*command)
        assert said.code == 3, command
        told = " ".join(said.err.split())
        assert "vocabulary.txt is not as its run wrote it" in told, command
        assert "securetm: hint: restore it" in told
