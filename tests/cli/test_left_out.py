"""Documents and parties do not vanish in silence: a run says at once what it leaves out and why, to people and to programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from securetm.federation.folder import reopen

from .conftest import Said, securetm
from .test_run_says import SUBJECTS

RUN = "run --corpus documents.jsonl --profile open --model lda --topics 2 --rounds 1 --json"
RUN += " --set vocabulary.min_documents=1 --set vocabulary.max_share=1 --set vocabulary.most_candidates=500"


def rows() -> list[dict[str, str]]:
    """Three parties with 20 documents each; one that has stop words only, and three documents that name nobody."""
    kept = [{"party": name, "text": f"{text} number{n}"} for name, text in SUBJECTS.items() for n in range(20)]
    lost = [{"party": "north", "text": ""}, {"party": "north", "text": " \t"}, {"party": "south", "text": "the of and"}]
    gone = [{"party": "east", "text": "of the"}, {"party": "east", "text": ""}]
    nobody = [{"text": "river lake"}, {"text": "goal"}, {"text": "law"}, {"text": ""}]
    return [*kept, *lost, *gone, *nobody]


def run(place: Path, *more: str) -> tuple[Said, str]:
    """What a run over those rows says, and that in one line."""
    (place / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    said = securetm(*RUN.split(), *more, "--out", "runs/one")
    assert said.code == 0, said.err
    return said, " ".join(said.err.split())


@pytest.fixture(autouse=True)
def _at_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_what_is_left_out_is_counted_for_each_party_and_for_the_source(tmp_path: Path) -> None:
    said, words = run(tmp_path, "--partition", "column")
    facts = said.json
    assert facts["parties"] == ["unnamed", "north", "south", "west"]
    assert facts["dropped"]["north"] == [{"reason": "without text", "documents": 2}]
    assert facts["dropped"]["south"] == [{"reason": "without a word that the tokeniser keeps", "documents": 1}]
    assert facts["dropped"]["unnamed"] == [{"reason": "without text", "documents": 1}]
    assert facts["dropped"]["west"] == []
    assert facts["source"]["read"] == len(rows())
    assert facts["source"]["without_a_party"] == 3
    assert facts["source"]["dropped"] == [
        {"reason": "without a word that the tokeniser keeps", "documents": 1, "party": "east"},
        {"reason": "without text", "documents": 1, "party": "east"},
    ]
    assert "Left out of 69 documents: 4 without text, 2 without a word that the tokeniser keeps." in words
    assert "No document is left of east, which takes no part." in words
    assert "3 documents name no party; they are held by a party called “unnamed”." in words
    first, training = words.find("Left out of"), words.find("training lda")
    assert 0 <= first < training or training < 0


def test_the_coordinator_is_told_no_such_figure(tmp_path: Path) -> None:
    run(tmp_path, "--partition", "column")
    folder = reopen(tmp_path / "runs" / "one")
    for path in folder.coordinator.rglob("*"):
        assert b"without text" not in path.read_bytes()


def test_nobody_and_a_party_called_unnamed_are_two(tmp_path: Path) -> None:
    named = (
        [{"party": "unnamed", "text": "river lake"}] * 5 + [{"text": "judge court"}] * 4 + [{"party": "west", "text": "goal"}]
    )
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in named), encoding="utf-8")
    said = securetm(*RUN.split(), "--partition", "column", "--out", "runs/two")
    assert said.code == 0, said.err
    held = {name: counts["all"] for name, counts in said.json["documents"].items()}
    assert held == {"unnamed": 5, "unnamed-2": 4, "west": 1}
