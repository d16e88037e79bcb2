"""`securetm run` takes every model of the registry from documents to topics that are read back, judged and used."""

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
from .conftest import securetm

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
