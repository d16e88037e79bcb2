"""A party adapts the model that it has of a run, and uses what comes of it like any other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from securetm.runs.finished import FinishedRun

from .conftest import Said, securetm


@pytest.fixture
def adapted(demo: Said, here: Path, tmp_path: Path) -> Said:
    """A model that was adapted to the documents of one party."""
    securetm("topics", "runs/demo", "--label", "1=the first")
    said = securetm("adapt", "runs/demo", "--corpus", "documents.jsonl", "--out", str(tmp_path / "mine"), "--json")
    securetm("topics", "runs/demo", "--label", "1=")
    return said


def test_what_was_adapted_is_used_like_any_model(adapted: Said, tmp_path: Path) -> None:
    assert adapted.code == 0, adapted.err
    told, mine = adapted.json, tmp_path / "mine"
    assert told["topics"] == FinishedRun.open(mine).topics()
    assert told["adapted"]["documents"]["held_out"] > 0
    assert {"shared", "adapted"} == set(told["adapted"]["held_out"])
    assert [row["topic"] for row in told["moved"]] == list(range(len(told["topics"])))
    shown = securetm("topics", str(mine))
    assert shown.code == 0, shown.err
    assert "the first" in shown.out
    assert securetm("topics", str(mine), "--html", str(tmp_path / "mine.html")).code == 0
    assert "No budget: the model may tell who is in it" in (tmp_path / "mine.html").read_text("utf-8")
    assert securetm("topics", str(mine), "--csv", str(tmp_path / "mine.csv")).code == 0
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("mine.html", "mine.csv")} == {0o600}
    (listed,) = securetm("runs", str(mine), "--json").json["runs"]
    assert (listed["trouble"], listed["kind"]) == ("", "party")
    rows = securetm("transform", str(mine), "new.jsonl", "--json").json["documents"]
    assert {len(row) for row in rows} == {len(told["topics"])}


@pytest.mark.slow
def test_a_party_of_a_simulation_gets_topics_of_its_own(here: Path, tmp_path: Path, workplace: Path) -> None:
    run = "runs/to adapt"
    if not Path(run).exists():
        settings = "--topics 3 --corpus documents.jsonl --partition column --model lda --rounds 5 --no-comparison --json"
        few = "--set vocabulary.min_documents=2 --set vocabulary.max_share=1.0 --set vocabulary.most_candidates=500"
        assert securetm("run", *settings.split(), *few.split(), "--out", run).code == 0
    party = json.loads((workplace / run / "run.json").read_text("utf-8"))["members"][0]
    said = securetm("adapt", run, "--party", party, "--own-topics", "2", "--out", str(tmp_path / "mine"), "--json")
    assert said.code == 0, said.err
    own = said.json["adapted"]["own_topics"]
    assert own == (2 if said.json["adapted"]["stages"] else 0)  # where the shared model is best, it stays as it is
    assert len(FinishedRun.open(tmp_path / "mine").topics()) == 3 + own
