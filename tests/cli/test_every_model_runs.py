"""Every model from the command line: from documents to topics that are read back, judged and shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from securetm.contracts import Needs
from securetm.plans.profiles import make_model
from securetm.runs.finished import FinishedRun

from ..models.small_models import EMBEDDED, OURS, small_settings
from ..quick_part import quick
from .conftest import SMALL, Said, securetm

GIVEN = (
    "vocabulary.min_documents=2",
    "vocabulary.max_share=1.0",
    "vocabulary.most_candidates=500",
    "embeddings.model=",  # nothing: the documents bring their embeddings
)


@pytest.fixture(scope="module")
def embedded(workplace: Path) -> Path:
    """The documents of the workplace with embeddings that tell the parties apart."""
    draw, rows = np.random.default_rng(0), []
    for line in (workplace / "documents.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        towards = np.eye(EMBEDDED)[len(row["party"])]
        rows.append(json.dumps({**row, "embedding": (towards + 0.1 * draw.normal(size=EMBEDDED)).round(4).tolist()}))
    (workplace / "embedded.jsonl").write_text("\n".join(rows), "utf-8")
    return workplace / "embedded.jsonl"


def profile_of(model: str) -> str:
    """The default; a model that asks each party by itself is refused by masked sums."""
    made = make_model(model, small_settings(model, 3))
    query = made.query(made.for_party(made.start(("a", "b", "c"), np.random.default_rng(0)), "a"))
    return "open" if query.terms.needs is Needs.EACH else "masked"


@pytest.mark.parametrize("model", quick(OURS, "prodlda", "sentence-lda"))
def test_from_documents_to_topics_and_figures(model: str, embedded: Path, here: Path) -> None:
    settings = [f"model.{name}={value}" for name, value in small_settings(model, 3).items()]
    options = ["--corpus", str(embedded), "--partition", "column", "--model", model, "--profile", profile_of(model)]
    chosen = [part for setting in (*settings, *GIVEN) for part in ("--set", setting)]
    out = f"runs/every-{model}"
    said = securetm("run", *options, *chosen, "--rounds", "2", "--no-comparison", "--out", out, "--json")
    assert said.code == 0, said.err
    assert said.json["rounds"] == (type(make_model(model, small_settings(model, 3))).most_rounds or 2)
    assert len(said.json["topics"]) >= 3
    run = FinishedRun.open(Path(out))
    assert np.isfinite(run.components_).all()
    np.testing.assert_allclose(run.components_.sum(axis=1), 1, rtol=1e-5)
    documents = "embedded.jsonl" if "embedding_size" in small_settings(model, 3) else "new.jsonl"
    transformed = securetm("transform", out, documents, "--json")
    assert transformed.code == 0, transformed.err
    shares = np.array(transformed.json["documents"])
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-4)
    judged = {row["figure"]: row["value"] for row in securetm("evaluate", out, "--json").json["rows"]}
    assert judged["held_out_folded"] > 1
    assert (judged["held_out"] is None) == ("embedding_size" in small_settings(model, 3))  # such a model reads whole texts
    assert judged["npmi_documents"] is not None


# ---- clusters of meaning ---------------------------------------------------------------------------------------------------


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
