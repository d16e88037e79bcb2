"""A party that joins out of its own files: the same model, its own results, and all that is refused before it connects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from securetm.federation.finished import load
from securetm.federation.joining_result import REPORT
from securetm.federation.store import read_json

from .joined import NAMES, Organisations, make_keys, trained

PLAN = """
profile = "masked"
[model]
name = "lda"
n_topics = 3
[vocabulary]
min_documents = 2
max_share = 1.0
most_candidates = 500
[training]
rounds = 2
held_out = 0.2
"""


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_keys(tmp_path_factory.mktemp("trial") / "keys")


@pytest.fixture
def organisations(keys: Path, tmp_path: Path) -> Organisations:
    return Organisations.of(keys, tmp_path / "all", PLAN)


def test_model_words_figures_and_report_land_at_every_party(organisations: Organisations, tmp_path: Path) -> None:
    result, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    for name in NAMES:
        report = joined.reports[name]
        model = load(Path(report["directory"]) / "model.safetensors")
        assert model.vocabulary == result.vocabulary
        assert all(np.array_equal(model.state[part], result.state[part]) for part in result.state)
        assert report["rounds"] == 2
        assert report["answered"] == {"joint": 1, "train": 2, "coherence": 1, "held_out": 1}
        assert {"npmi", "held_out", "diversity"} <= set(report["quality"])
        assert read_json(Path(report["directory"]) / REPORT) == report
