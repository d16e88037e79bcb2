"""Clusters of meaning from the command line: a run, like topics together, and documents that are far from all of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from .conftest import SMALL, Said, securetm

TEXTS = ("ship harbour sail anchor", "bread oven flour salt", "court judge law witness")
SETTINGS = ("--set", "model.embedding_size=6", "--set", "training.start=plain", "--set", "model.of_words=0.3")


def documents(path: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"text": TEXTS[n % 3], "party": f"party {n % 4}", "vector": (np.eye(6)[n % 3] + rng.normal(0, 0.05, 6)).tolist()}
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def run(here: Path) -> Said:
    documents(here / "meant.jsonl", 200)
    where = ("--corpus", "meant.jsonl", "--embedding", "vector", "--party", "party")
    learned = ("--profile", "masked", "--model", "semantic", "--rounds", "5", "--set", "corpus.partition=column")
    return securetm("run", *where, *learned, *SMALL[4:], "--topics", "5", *SETTINGS, "--out", "runs/meant", "--json")


def test_like_topics_stand_together_and_far_documents_have_none(run: Said, here: Path) -> None:
    assert run.code == 0, run.err
    said = securetm("topics", "runs/meant", "--under", "3", "--json")
    assert said.code == 0, said.err
    groups = said.json["under"]
    assert sorted(topic for group in groups for topic in group) == list(range(5))
    assert len(groups) == 3
    refused = securetm("topics", "runs/meant", "--under", "6")
    assert refused.code == 2
    assert "1 to 5" in refused.err

    rows = [{"text": TEXTS[0], "vector": [1, 0, 0, 0, 0, 0]}, {"text": "unheard", "vector": [0, 0, 0, -1, 0, 0]}]
    (here / "strange.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    said = securetm("transform", "runs/meant", "strange.jsonl", "--outliers", "0.7", "--json")
    assert said.code == 0, said.err
    assert said.json["outliers"] == [1]
    assert len(said.json["documents"]) == 2  # every document has its shares
    assert "far from it" in said.err


def test_a_column_of_embeddings_begins_without_vectors_of_another_model(here: Path) -> None:
    documents(here / "meant.jsonl", 200)
    where = ("--corpus", "meant.jsonl", "--embedding", "vector", "--public", "embeddings=made elsewhere", "--parties", "4")
    learned = ("--profile", "dp-central", "--epsilon", "3", "--model", "semantic", "--topics", "3", "--rounds", "2")
    size = ("--set", "model.embedding_size=6", "--vocabulary", "english", "--no-comparison")
    said = securetm("run", *where, *learned, *size, "--out", "runs/column", "--json")
    assert said.code == 0, said.err
    assert 'start = "plain"' in (here / "runs/column/plan.toml").read_text("utf-8")
    refused = securetm("run", *where, *learned, *size, "--set", "training.vectors=minilm", "--out", "runs/never")
    assert refused.code == 2
    assert "384" in refused.err


def test_a_model_without_centres_knows_no_far_documents(demo: Said, here: Path) -> None:
    said = securetm("transform", "runs/demo", "new.jsonl", "--outliers", "0.3")
    assert said.code == 2
    assert "no centres of meaning" in said.err
    assert securetm("topics", "runs/demo", "--under", "2").code == 0  # by their words
