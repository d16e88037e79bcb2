"""A folder with the documents that the pages and the README speak of. No test of its own."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

from ..auditing.conftest import write_plan
from ..cli.conftest import write_documents
from .blocks import QUICK

SUBJECTS = {  # as docs/tutorials/quickstart.md writes them
    "north": "heart valve pressure artery rhythm chest pulse",
    "south": "lung airway breath cough oxygen mask asthma",
    "east": "bone fracture joint knee cast walking hip",
    "west": "skin rash itch cream allergy spots nail",
}


def write_clinics(folder: Path) -> None:
    """`notes.jsonl` of four parties, the same as a table, a public list of their words, and a new document."""
    draw = random.Random(1)
    rows = []
    for party, words in SUBJECTS.items():
        for _ in range(60):
            text = draw.choices(words.split(), k=8) + draw.choices("patient doctor visit week".split(), k=3)
            rows.append({"text": " ".join(text), "party": party})
    (folder / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "words.txt").write_text("\n".join(" ".join(SUBJECTS.values()).split()), "utf-8")
    (folder / "new.jsonl").write_text('{"text": "a cough in the chest for a week"}\n', "utf-8")
    with (folder / "reports.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("body", "site"), *((row["text"], row["party"]) for row in rows)])


@pytest.fixture
def clinics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That folder is the current one. In it lies a small plan of an audit, too."""
    write_clinics(tmp_path)
    write_documents(tmp_path / "documents.jsonl", 60)
    write_plan(tmp_path / QUICK, tmp_path / "documents.jsonl", profiles=["open"], batch=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)  # as whoever tries a page in a folder of their own has it in PYTHONPATH
    return tmp_path
