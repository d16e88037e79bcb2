"""FedNMF's experiments on a few documents: clients are as the paper deals them, every method has a row, verdicts follow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.keeping import Key
from lab.measuring import Row
from lab.papers import fednmf, fednmf_clients, fednmf_findings
from lab.papers.experiment import HOLDS, NOT_HERE, reproduced
from lab.papers.fednmf import FEDNMF, SCALES, USUAL, cases, reproduce
from lab.papers.fednmf_clients import papers_partition
from lab.papers.fednmf_findings import THEIRS, findings
from lab.papers.fednmf_rows import FACTORED, FED_LDA, MAIN, METHODS, WITH_MI, make
from lab.research_corpora import looking_in
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting

from ..federation.conftest import FIVE, texts
from ..quick_part import quick

MINE = "mine.jsonl"
FEW: dict[str, Any] = {
    **SCALES["small"].sizes,
    "corpora": {MINE: (60, 1)},
    "words": 60,
    "topics": {2: 1},
    "rounds": 2,
    "clients": (5,),
    "alphas": (0.1,),
    "tuning": {**SCALES["small"].sizes["tuning"], "corpora": {MINE: (60, 1)}, "words": 60},
    "private": {"models": (), "seeds": 0},
    "supervised": (),
}


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    lines = [{"text": text, "label": name} for n, name in enumerate(FIVE) for text in texts(FIVE[name], 24, n)]
    (tmp_path / MINE).write_text("\n".join(map(json.dumps, lines)), "utf-8")
    for read in (fednmf_clients.labelled, fednmf_clients.frequent, fednmf_clients.dealt):
        read.cache_clear()
    with looking_in(tmp_path):
        yield tmp_path


def case(method: str, **other: Any) -> Key:
    return {
        **USUAL, "part": MAIN, "method": method, "corpus": MINE, "documents": None, "words": 60, "local_epochs": 1, "topics": 3,
        "rounds": 3, "seed": 0, **other,
    }  # fmt: skip


def test_clients_are_equally_large_and_as_different_as_alpha_says() -> None:
    labels = np.repeat(["a", "b", "c", "d"], 50)
    corpus = Corpus.from_strings([f"{label}word other{n}" for n, label in enumerate(labels)], labels=labels.tolist())
    alike, apart = (papers_partition(corpus, 4, alpha) for alpha in (float("inf"), 1e-9))
    for parties in (alike, apart):
        assert [len(party) for party in parties.values()] == [50] * 4
    assert set(np.asarray(alike["party-1"].labels).tolist()) == {"a", "b", "c", "d"}
    assert all(len(set(np.asarray(party.labels).tolist())) == 1 for party in apart.values())


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("method", quick(METHODS, *METHODS[::5]))
def test_every_method_has_a_row(method: str) -> None:
    row = make(case(method))
    assert {"f1", "accuracy", "we_coherence", "npmi", "diversity"} <= row.keys()
    assert 0 < row["f1"] <= 1
    assert ("f1_of_kept_weights" in row) == (method in FACTORED or method.startswith("NMF+"))


@pytest.mark.slow
def test_a_corpus_of_your_own_and_a_second_start(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fednmf, "TOPICS", 3)  # it has hardly forty words
    monkeypatch.setattr(fednmf_findings, "USUAL_TOPICS", 3)
    tiny = replace(SCALES["small"], sizes=FEW)
    result = reproduced(replace(FEDNMF, scales={"small": tiny}), "small", mine / "kept.jsonl")
    assert len(result["rows"]) == len(cases(tiny))
    assert result["corpora"][0]["labels"] == 5
    assert {claim["verdict"] for claim in result["claims"]}
    assert {"Figure 2", "Figure 4"} <= {plot["figure"] for plot in result["plots"]}
    before = (mine / "kept.jsonl").read_text("utf-8")
    again = reproduced(replace(FEDNMF, scales={"small": tiny}), "small", mine / "kept.jsonl")
    assert (mine / "kept.jsonl").read_text("utf-8") == before
    assert again["claims"] == result["claims"]
    for wrong in ("corpus=absent.jsonl", "model=lda"):
        with pytest.raises(BadSetting):
            reproduce("small", only=[wrong])


def made_up(gain: float) -> list[Row]:
    """Rows in which mutual information gains so much, and FedLDA is below everything else."""
    rows = []
    for corpus in ("SMS Spam", "TagMyNews"):
        for method, seed in ((method, seed) for method in METHODS for seed in (0, 1)):
            f1 = 0.5 + 0.001 * seed + gain * method.endswith(WITH_MI) - 0.2 * (method == FED_LDA)
            figures = dict.fromkeys(("f1", "accuracy", "we_coherence", "npmi", "diversity"), f1)
            kept = {"f1_of_kept_weights": f1} if method in FACTORED or method.startswith("NMF+") else {}
            sent = {"after": [1], "f1_after_1": f1, "megabytes_a_round": 1.0} if method in FACTORED else {}
            rows.append({**case(method, corpus=corpus, topics=50, seed=seed), **figures, **kept, **sent})
    return rows


def test_verdicts_follow_from_rows() -> None:
    claims = {gain: findings(SCALES["medium"], made_up(gain)).claims for gain in (0.1, -0.1)}
    for gain, wanted in ((0.1, HOLDS), (-0.1, NOT_HERE)):
        found = {claim.claim: claim.verdict for claim in claims[gain]}
        assert found["Mutual information improves classification under every federated optimiser"] == wanted
        assert found["Mutual information improves coherence (Table III)"] == wanted
        assert found["Every FedNMF+MI classifies better than FedLDA"] == HOLDS
    assert THEIRS["FedYogi+MI"][1][0] == 0.973
