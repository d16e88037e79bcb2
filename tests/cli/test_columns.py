"""The columns of a file of documents are named on the command line, and every hint about them names what can be typed there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from securetm.corpus.records import ROLES

from .conftest import SMALL, securetm

NAMED = {
    "id": "key",
    "text": "note",
    "label": "topic",
    "party": "clinic",
    "date": "day",
    "person": "patient",
    "embedding": "vector",
}


@pytest.fixture
def records(here: Path) -> Path:
    """The documents of the workplace under other names."""
    path = here / "records.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, line in enumerate((here / "documents.jsonl").read_text("utf-8").splitlines()):
            row = json.loads(line)
            more = {
                "key": f"key {number}",
                "topic": "care",
                "day": "2026-11-22",
                "patient": f"patient {number}",
                "vector": [0.5, 1.0],
            }
            file.write(json.dumps({"note": row["text"], "clinic": row["party"], **more}) + "\n")
    return path


def test_every_column_can_be_named(records: Path) -> None:
    assert NAMED.keys() == set(ROLES)
    asked = [part for role, column in NAMED.items() for part in (f"--{role}", column)]
    small = [*SMALL, "--model", "prodlda", "--rounds", "1", "--partition", "column", "--out", "runs/records", "--json"]
    said = securetm("run", "--corpus", str(records), *asked, *small)
    assert said.code == 0, said.err
    assert said.json["parties"] == ["centre", "east", "north", "south", "west"]
    plan = json.loads(Path("runs/records/run.json").read_text("utf-8"))["plan"]
    assert {role: plan["corpus"][role] for role in NAMED} == NAMED
