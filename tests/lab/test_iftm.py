"""iFTM's experiments on a few documents: parties are unequal, noise is the profile's, and verdicts follow from rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.keeping import Key
from lab.measuring import Row
from lab.papers import iftm_rows
from lab.papers.experiment import HOLDS, NOT_HERE, reproduced
from lab.papers.iftm import IFTM, SCALES, cases
from lab.papers.iftm_findings import findings
from lab.papers.iftm_rows import ALONE, MATCHED, PROTECTED, SHARES, WITHOUT, make, split
from lab.papers.protected import UNTRAINED
from securetm.corpus.corpus import Corpus
from securetm.corpus.tokeniser import prune

from ..federation.conftest import FIVE, texts

FEW: dict[str, Any] = {
    **SCALES["small"].sizes, "documents": 140, "words": 60, "topics": (3,), "sweeps": 2, "rounds": 2, "synchronised": 3,
    "epochs": 3, "private": {"models": (), "documents": 140, "seeds": 0},
}  # fmt: skip


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Documents with subjects in place of 20 Newsgroups."""
    groups = dict(zip(("comp.x", "rec.x", "sci.x", "talk.x", "misc.x"), FIVE, strict=True))
    labels = [group for group in groups for _ in range(30)]
    written = [text for n, name in enumerate(groups.values()) for text in texts(FIVE[name], 30, n)]
    corpus = Corpus.from_strings(written, labels=labels)
    monkeypatch.setattr(iftm_rows, "read_newsgroups", lambda: corpus)
    monkeypatch.setattr(iftm_rows, "public_words", lambda most: prune(corpus, max_words=most))
    split.cache_clear()
    yield
    split.cache_clear()


def case(**other: Any) -> Key:
    return {
        "trained": MATCHED, "model": "lda", "documents": 140, "words": 60, "parties": 3, "seed": 0, "topics": 3,
        "epsilon": None, "tau": 0.2, "distribution": "continuous", "sweeps": 2, "rounds": 2, "after": [1, 2], **other,
    }  # fmt: skip


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("parties", SHARES)
def test_parties_are_as_unequal_as_the_papers(parties: int) -> None:
    place = split(140, 60, parties, 0)
    sizes = np.array([len(party) for party in place.parties.values()])
    assert sizes / sizes.sum() == pytest.approx(np.array(SHARES[parties]) / sum(SHARES[parties]), abs=0.02)
    assert len(place.tested) == 20
    mine = [set(np.asarray(party.keys).tolist()) for party in place.parties.values()]
    assert not set.intersection(*mine) | set(np.asarray(place.tested.keys).tolist()) & set.union(*mine)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("model", ["lda", "sentence-lda"])
def test_without_noise_a_word_is_worth_more(model: str) -> None:
    clear, noisy = (make(case(model=model, epsilon=epsilon)) for epsilon in (None, 1.0))
    assert clear["likelihood"] > noisy["likelihood"]
    assert clear["likelihood"] == clear["likelihood_after_2"]
    assert 0 <= clear["precision"] <= 1


@pytest.mark.usefixtures("few")
def test_a_federation_under_a_profile_is_judged_alike() -> None:
    row, floor = (make({**case(trained=PROTECTED, model="lda-vi", parties=4), "profile": at}) for at in ("open", UNTRAINED))
    assert 0 <= floor["precision"] <= 1
    assert row["asked"] >= 1
    assert row["likelihood"] < 0
    assert 0 <= row["precision"] <= 1


@pytest.mark.usefixtures("few")
def test_a_tiny_scale_has_every_figure_and_goes_on(tmp_path: Path) -> None:
    tiny = replace(SCALES["small"], sizes=FEW)
    result = reproduced(replace(IFTM, scales={"small": tiny}), "small", tmp_path / "kept.jsonl")
    assert len(result["rows"]) == len(cases(tiny))
    assert {plot["figure"] for plot in result["plots"]} == {"Figure 5", "Figure 6", "Figure 7", "Table 3"}
    assert len(result["claims"]) >= 11
    before = (tmp_path / "kept.jsonl").read_text("utf-8")
    again = reproduced(replace(IFTM, scales={"small": tiny}), "small", tmp_path / "kept.jsonl")
    assert (tmp_path / "kept.jsonl").read_text("utf-8") == before
    assert again["claims"] == result["claims"]


def made_up(federated: float) -> list[Row]:
    """Rows of two seeds: parties alone at -7, iFTM elsewhere."""
    rows = []
    for key in (key for seed in (0, 1) for key in cases(replace(SCALES["medium"], seeds=(seed,)))):
        if key["trained"] == WITHOUT:
            rows.append({**key, "precision": 0.5, "median_words": 60.0, "long_words": 200.0})
            continue
        value = -7.0 if key["trained"] in (ALONE, PROTECTED) else federated + 0.01 * (key.get("epsilon") or 12)
        way = {f"likelihood_after_{after}": value for after in key.get("after", ())}
        rows.append({**key, **way, "likelihood": value, "precision": 0.6, "topics_found": 20, "npmi": 0.1, "diversity": 0.5})
        rows[-1] |= {"asked": 1, "megabytes": 1.0}
    return rows


def test_verdicts_follow_from_rows() -> None:
    for value, wanted in ((-6.0, HOLDS), (-8.0, NOT_HERE)):
        found = findings(SCALES["medium"], made_up(value))
        verdicts = {claim.claim: claim.verdict for claim in found.claims}
        (scarcity,) = (verdicts[claim] for claim in verdicts if "(Fig. 5)" in claim and "epsilon = 11" in claim)
        assert scarcity == wanted
        assert verdicts["Likelihood rises with epsilon (Fig. 6)"] == HOLDS
        assert verdicts["Topics as further features make a classifier more precise (Table 3)"] == HOLDS
        (promise, *_) = found.tables["What epsilon promises"]
        assert promise["a document of median length"] == 8 * 60
