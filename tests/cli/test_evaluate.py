"""`securetm evaluate`: of a run, of topics from anywhere, and what it says where something is not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from .conftest import Said, securetm

RUN = "runs/demo"


def rows(said: Said) -> dict[str, dict[str, Any]]:
    assert said.code == 0, said.err
    return {row["figure"]: row for row in said.json["rows"]}


def test_a_run_is_judged_by_the_documents_in_its_folder(demo: Said, here: Path) -> None:
    said = securetm("evaluate", RUN, "--json")
    found = rows(said)
    assert found["npmi_documents"]["value"] == pytest.approx(demo.json["quality"]["npmi"], abs=1e-6)
    assert found["held_out"]["value"] == pytest.approx(demo.json["baseline"]["model"], rel=1e-6)
    assert found["held_out"]["low"] < found["held_out"]["value"] < found["held_out"]["high"]
    assert len(found["c_v"]["by_topic"]) == said.json["topics"] == 3
    assert said.json["documents"] == 300
    assert 0 < said.json["held_out_documents"] < 100
    assert "random topics" in found["diversity"]["controls"]
    assert "train with --label COLUMN" in found["accuracy"]["needs"]
    assert "NPMI by documents" in said.err


def test_labels_and_vectors_make_figures_of_their_own(demo: Said, here: Path) -> None:
    found = rows(securetm("evaluate", RUN, "--corpus", "documents.jsonl", "--label", "party", "--vectors", "glove", "--json"))
    assert 0 < found["macro_f1"]["value"] <= 1
    assert found["embedding_coherence"]["controls"].keys() == {"random topics", "vectors alone"}


def test_topics_from_anywhere(here: Path) -> None:
    Path("topics.json").write_text(json.dumps({"topics": [["river", "lake"], ["judge", "court"]]}), "utf-8")
    found = rows(securetm("evaluate", "--topics", "topics.json", "--corpus", "documents.jsonl", "--json"))
    assert found["npmi_windows"]["value"] is not None
    assert "weights of words" in found["held_out"]["needs"]
    Path("topics.json").write_text(json.dumps([["river", "lake"], ["judge", "zyx"]]), "utf-8")
    said = securetm("evaluate", "--topics", "topics.json", "--corpus", "documents.jsonl")
    assert "Of 4 words of the topics" in " ".join(said.out.split())
    assert (
        "zyx"
        in securetm("evaluate", "--topics", "topics.json", "--corpus", "documents.jsonl", "--json").json["words_in_no_document"]
    )
    said = securetm("evaluate", "--topics", "topics.json")
    assert "c_v by windows of 110: needs documents: --corpus FILE" in " ".join(said.out.split())
    assert "without documents" in " ".join(said.out.split())


def test_a_folder_without_documents_says_so(demo: Said, here: Path) -> None:
    shutil.copytree(RUN, "runs/bare")
    for file in Path("runs/bare").rglob("corpus.npz"):
        file.unlink()
    found = rows(securetm("evaluate", "runs/bare", "--json"))
    assert "the folder of this run holds none: --corpus FILE" in found["npmi_documents"]["needs"]
    assert "--corpus FILE" in found["held_out"]["needs"]
