"""What `federate` returns: the table of `securetm run --json`, with data frames and a page for notebooks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import securetm
from securetm.federation.folder import result_of
from securetm.runs.finished import FederationResult

from .conftest import FIVE, texts

SETTINGS = {"profile": "open", "model.n_topics": 3, "training.rounds": 5, "vocabulary.min_documents": 2}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> FederationResult:
    parties = {name: securetm.Corpus.from_strings(texts(FIVE[name], 40, n), name=name) for n, name in enumerate(FIVE)}
    small = {"vocabulary.most_candidates": 500, "vocabulary.max_share": 1.0}
    return securetm.federate(parties, tmp_path_factory.mktemp("result") / "run", {**SETTINGS, **small})


def test_it_is_the_table_that_the_command_prints(result: FederationResult) -> None:
    assert result == result_of(Path(result["directory"]))
    assert json.loads(json.dumps(result))["topics"] == result["topics"]
    assert result.quality == result["quality"]


def test_frames_hold_the_same_figures(result: FederationResult) -> None:
    frame = result.topics_frame(5)
    assert list(frame.columns) == ["topic", "rank", "word", "weight"]
    assert frame[frame["topic"] == 1]["word"].tolist() == result["topics"][1][:5]
    assert frame["weight"].between(0, 1).all()
    prevalence = result.prevalence_frame()
    assert list(prevalence.index) == result["parties"]
    np.testing.assert_allclose(prevalence.sum(axis=1), 1, atol=1e-3)
    assert result.documents_frame()["all"].to_dict() == dict.fromkeys(FIVE, 40)
    quality = result.quality_frame()
    assert len(quality) == 1 + 3 * len(FIVE)
    assert quality["npmi"][0] == result["quality"]["npmi"]
    assert list(result.spent_frame().index) == result["parties"]


def test_the_model_is_at_hand_and_reads_texts(result: FederationResult) -> None:
    shares = result.model.transform([*texts(FIVE["north"], 2, 9)])
    assert shares.shape == (2, 3)
