"""Every run says whether its model is of use: beside word frequencies alone and a uniform guess, on held-out words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm import federate
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin
from securetm.federation.simulation.comparison import weighed
from securetm.federation.simulation.simulation import execute
from securetm.reports.runs import of_use
from securetm.stages import Unwatched

from .conftest import small_plan

WORDS = {"vocabulary.min_documents": 2, "vocabulary.max_share": 1.0, "vocabulary.most_candidates": 500}
LDA = {"profile": "open", "model.name": "lda", "model.n_topics": 3, **WORDS}


@pytest.fixture(scope="module")
def compared(corpora: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    settings = {**LDA, "training.rounds": 20, "training.held_out": 0.2}
    return federate(corpora, tmp_path_factory.mktemp("compared") / "run", settings)


def test_a_model_that_learned_is_of_use(compared: Mapping[str, Any]) -> None:
    result = compared
    told = result["baseline"]
    assert result["useful"] is True
    assert result["quality"]["held_out"] == pytest.approx(told["model"], rel=1e-6)
    assert told["model"] < told["word_frequencies"] < told["uniform"] == 40
    assert 0 < told["gain"]["low"] < told["gain"]["value"] < told["gain"]["high"]
    assert told["worse_than_uniform"] is False


def test_a_model_that_predicts_worse_is_of_no_use(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Steps that are too long make a network sure of the wrong words."""
    plan = small_plan(model__learning_rate=3.0, training__rounds=12, training__held_out=0.4)
    result = execute(begin(tmp_path / "run", plan, corpora), Unwatched(), comparison=False)
    assert result["useful"] is False
    assert result["baseline"]["model"] > result["baseline"]["word_frequencies"]
    assert result["baseline"]["gain"]["high"] < 0


def test_what_too_few_documents_show_is_not_told(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    result = federate(corpora, tmp_path / "run", {**LDA, "training.rounds": 1, "training.held_out": 0.02}, comparison=False)
    told = result["baseline"]
    assert told["documents"] < 10
    assert result["useful"] is None


# ---- the comparison with each party alone ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_large_run_is_compared_by_a_sample(
    corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from securetm.federation.simulation import comparison

    monkeypatch.setattr(comparison, "MOST_TRAINED", 30)
    monkeypatch.setattr(comparison, "MOST_JUDGED", 24)
    trained: list[int] = []
    before = comparison.train_alone

    def counted(plan: Any, name: str, documents: Any, *rest: Any) -> Any:
        trained.append(len(documents))
        return before(plan, name, documents, *rest)

    monkeypatch.setattr(comparison, "train_alone", counted)
    results = [federate(corpora, tmp_path / name, {**LDA, "training.rounds": 2, "training.held_out": 0.3}) for name in "ab"]
    assert trained == [30] * 6
    told = results[0]["comparison"]
    assert (told["sampled"], told["training_documents"], told["judged_documents"]) == (True, 30, 8)
    assert results[0]["alone"] == results[1]["alone"]  # the sample's seed is fixed
    assert results[0]["baseline"]["documents"] <= 24


def test_a_run_without_the_comparison_trains_nobody_alone(
    corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from securetm.federation.simulation import comparison

    monkeypatch.setattr(comparison, "train_alone", lambda *_: pytest.fail("a party trained alone"))
    result = federate(corpora, tmp_path / "run", {**LDA, "training.rounds": 3}, comparison=False)
    assert result["comparison"]["made"] is False
    assert result["alone"] == result["topics_alone"] == {}
    assert set(result["shared_at_party"]) == set(corpora)
    assert np.isfinite(result["quality"]["held_out"])


def test_perplexity_does_not_make_a_model_useful_that_read_the_whole_text(
    corpora: Mapping[str, Corpus], tmp_path: Path
) -> None:
    """The embedding of a held-out document was made of all its words, those that are to be predicted too."""
    rng = np.random.default_rng(3)
    held = {
        name: one.replace(embeddings=rng.standard_normal((len(one), 6)).astype(np.float32)) for name, one in corpora.items()
    }
    reading = {"model.name": "zeroshot-tm", "model.embedding_size": 6, "embeddings.model": ""}
    settings = {**LDA, **reading, "training.rounds": 5, "training.held_out": 0.2}
    result = federate(held, tmp_path / "run", settings, comparison=False)
    assert result["useful"] is not True
    assert result["baseline"]["from_whole_texts"] is True
    assert result["useful"] is False or "made of all its words" in of_use(result)
    assert "made of all its words" in of_use({**result, "useful": None})


def test_a_verdict_weighs_diversity_and_documents_that_are_left_out(compared: Mapping[str, Any]) -> None:
    held = {"north": {"all": 100, "with_agreed_words": 90}, "south": {"all": 100, "with_agreed_words": 60}}
    assert weighed({"useful": True}, 0.3, held)["useful"] is True
    same = weighed({"useful": True}, 0.07, held)
    assert (same["useful"], same["weighed"]["why"]) == (False, ["same words"])
    left = weighed({"useful": True}, 0.3, {"north": {"all": 100, "with_agreed_words": 30}})
    assert (left["useful"], left["weighed"]["without_words"]) == (False, 70)
    assert weighed({"useful": None}, 0.07, held)["useful"] is None
    said = " ".join(of_use({**compared, **same}).split())
    assert "of no use" in said
    assert "Its topics say the same words (diversity 0.07)" in said
    assert "70 of 100 documents have no word" in " ".join(of_use({**compared, **left}).split())
