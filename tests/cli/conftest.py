"""The command line as a test calls it: in this process, with its streams and its exit code caught."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from securetm.cli.main import main

from ..comparisons import comparing
from ..federation.conftest import FIVE, texts

# Few candidates for words: the sketch of all parties' words is otherwise 14 MB in each message.
SETTINGS = ("model.hidden=8", "vocabulary.min_documents=2", "vocabulary.max_share=1.0", "vocabulary.most_candidates=500")
SMALL = ("--topics", "3", *(part for setting in SETTINGS for part in ("--set", setting)))


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as exactly one JSON document."""
        return json.loads(self.out)


def securetm(*arguments: str) -> Said:
    """Runs the command in this process."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["securetm", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return Said(int(end.value.code or 0), out.getvalue(), err.getvalue())


def write_documents(path: Path, documents: int) -> None:
    """As many documents of each party, with the party's name."""
    rows = [{"text": text, "party": name} for n, name in enumerate(FIVE) for text in texts(FIVE[name], documents, n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents in it, and no cache but its own."""
    place = tmp_path_factory.mktemp("workplace")
    write_documents(place / "documents.jsonl", 60)
    write_documents(place / "new.jsonl", 3)
    write_documents(place / "mine.jsonl", 20)
    (place / "plan.toml").write_text(PLAN, encoding="utf-8")
    return place


PLAN = """\
seed = 3

[corpus]
source = "documents.jsonl"
text = "text"
party = "party"
partition = "column"

[model]
name = "prodlda"
batch = 40

[training]
rounds = 6
"""


@pytest.fixture
def here(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder is the workplace."""
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("XDG_CACHE_HOME", str(workplace / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(workplace / "data"))
    return workplace


@pytest.fixture(scope="session")
def demo(workplace: Path) -> Iterator[Said]:
    """A finished run in runs/demo, and what the command said."""
    before = Path.cwd()
    os.chdir(workplace)
    try:
        with comparing(True):
            said = securetm("run", "plan.toml", *SMALL, "--out", "runs/demo", "--json")
        yield said
    finally:
        os.chdir(before)
