"""gFedNTM's experiments on a few documents: scores mean what they say, nodes together are one place, and verdicts follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.papers import gfedntm_rows
from lab.papers.experiment import HOLDS, IN_PART, NOT_HERE, Scale, reproduced
from lab.papers.gfedntm import GFEDNTM, SCALES, SCENARIOS, cases
from lab.papers.gfedntm_findings import THEIRS, findings
from lab.papers.gfedntm_rows import (
    ADDITIVE,
    ALONE,
    BY_GIBBS,
    CENTRAL,
    FEDERATED,
    KNOWN,
    OF_SUBJECTS,
    PRODLDA,
    VARIATIONAL,
    mean_least,
    model_of,
    mover_distance,
    of_documents,
    of_topics,
)
from lab.synthetic_documents import LdaNodes, lda_nodes
from lab.training import together
from securetm.corpus.corpus import Corpus
from securetm.corpus.word_vectors import WordVectors

from ..federation.conftest import SUBJECTS, texts

TOPICS = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25]])
FEW: dict[str, Any] = {
    "known": {"shared": (5, 40), "etas": (0.01,), "words": 120, "topics": 50, "documents": 40, "validation": 8},
    "epochs": dict.fromkeys(SCENARIOS, 2),
    "beside": dict.fromkeys((ADDITIVE, BY_GIBBS, VARIATIONAL), ((5, 0.01),)),
    "stated_alpha": False,
    "private": {"models": {KNOWN: (), OF_SUBJECTS: ()}, "seeds": 0, "words": 120, "documents": 40},
    "alike": {"shared": (5,), "etas": (0.01,), "documents": 40},
    "subjects": {"documents": 200, "words": 60, "epochs": 2},
}


def test_scores_know_the_truth() -> None:
    assert of_topics(TOPICS, TOPICS[::-1])["tss"] == pytest.approx(3)
    assert of_topics(TOPICS, TOPICS[:1])["tss"] == pytest.approx(1 + 0 + 0.5**0.5)
    alike = np.full((3, 4), 0.25)
    assert of_topics(alike, alike)["tss_as_published"] == pytest.approx(3 * 0.75**0.5)  # the last word's place is empty
    shares = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert of_documents(shares, shares[:, ::-1])["dss"] == pytest.approx(0)
    found = of_documents(shares, np.full((3, 2), 0.5))
    assert found["dss"] == pytest.approx(2 * (1 + 2 * (1 - 0.5**0.5)) / 3)
    assert found["dss_per_pair"] == pytest.approx(found["dss"] / 2)


def test_the_distance_of_two_topics_moves_each_word_once() -> None:
    vectors = WordVectors.of("made up", ["north", "east", "south"], np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0]]))
    assert mover_distance(["north", "east"], ["east", "north"], vectors) == 0
    assert mover_distance(["north", "east"], ["south", "east"], vectors) == pytest.approx(1)
    assert mean_least([["north"], ["east"]], [["south"], ["east"]], vectors) == pytest.approx(2**0.5 / 2)


@pytest.mark.parametrize("model", [BY_GIBBS, VARIATIONAL, ADDITIVE])
def test_nodes_together_learn_what_one_place_learns(model: str) -> None:
    """Sums over all documents are the same to the last bits, whoever holds them; a batch of all documents is such a sum."""
    nodes = lda_nodes(LdaNodes(nodes=3, topics=6, shared=3, words=80, alpha=0.1, documents=20, validation_documents=1), seed=2)
    one = {"everybody": Corpus.concat(list(nodes.train.values()))}
    learner = model_of({"model": model, "topics": 6, "alpha": 0.1, "scenario": ALONE})
    start = learner.start(one["everybody"].vocabulary, np.random.default_rng(0))
    of_nodes, of_one = (learner.topics(together(learner, parties, start, 3)) for parties in (nodes.train, one))
    if model == ADDITIVE:  # a batch of one place would have 32 documents, not three times 20
        of_one = learner.topics(together(type(learner)(n_topics=6, batch=60, device="cpu"), one, start, 3))
    assert np.abs(of_nodes - learner.topics(start)).max() > 1e-4
    assert np.allclose(of_nodes, of_one, rtol=0, atol=1e-5 if model == ADDITIVE else 1e-12)


@pytest.fixture
def made_up_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus of five subjects with drawn embeddings in the place of 20 Newsgroups."""
    named = dict(zip(("comp.a", "rec.b", "sci.c", "talk.d", "misc.e"), [*SUBJECTS.values()] * 2, strict=False))
    written = [(label, text) for n, (label, words) in enumerate(named.items()) for text in texts(words, 40, n)]
    drawn = np.random.default_rng(0).normal(size=(len(written), 384)).astype(np.float32)
    corpus = Corpus.from_strings([text for _, text in written], labels=[label for label, _ in written], embeddings=drawn)
    monkeypatch.setattr(gfedntm_rows, "labelled", lambda *_: corpus)


@pytest.mark.slow
@pytest.mark.usefixtures("made_up_subjects")
def test_every_case_gives_a_row_and_every_claim_a_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scale = Scale("few", (0, 1), FEW, ("few documents",))
    monkeypatch.setitem(SCALES, "few", scale)
    monkeypatch.setattr("lab.papers.gfedntm.research_file", lambda _: tmp_path)
    result = reproduced(GFEDNTM, "few", tmp_path / "kept.jsonl")
    rows = result["rows"]
    assert len(rows) == len(cases(scale))
    lda = {(row["scenario"], row["seed"]): row for row in rows if row.get("model") == BY_GIBBS}
    for seed in (0, 1):
        assert lda[FEDERATED, seed]["tss"] == lda[CENTRAL, seed]["tss"]
        assert 0 < lda[ALONE, seed]["dss_per_pair"] < 1
    assert all(row["comp"] == 0 for row in rows if row.get("evaluated") == "comp" and row["topics"] == 10)
    assert len(result["claims"]) == 11
    for claim in result["claims"]:
        assert claim["verdict"] in (HOLDS, IN_PART, NOT_HERE)
        assert all(claim.values())
    assert {plot["figure"] for plot in result["plots"]} == {"Figure 3", "Figure 4"}
    assert all(len(at) == len(plot["away"][line]) for plot in result["plots"] for line, at in plot["lines"].items())
    turned = [{**row, "dss_per_pair": 1 - row["dss_per_pair"]} if row.get("model") == PRODLDA else row for row in rows]
    before, after = (next(iter(findings(scale, of).claims)).verdict for of in (rows, turned))
    assert {before, after} == {HOLDS, NOT_HERE}


def test_a_scale_says_what_is_smaller_and_the_largest_is_the_papers() -> None:
    known = SCALES["paper"].sizes["known"]
    assert (known["documents"], known["validation"], known["words"], known["topics"]) == (10_000, 1_000, 5_000, 50)
    assert set(known["shared"]) == set(THEIRS["shared"])
    assert set(known["etas"]) == set(THEIRS["eta"])
    assert len(SCALES["paper"].seeds) == 10
    assert all(len(scale.reductions) > len(SCALES["paper"].reductions) for name, scale in SCALES.items() if name != "paper")
