"""What may leave of a run is a folder of its own, and nothing that no guarantee covers lies in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import execute
from securetm.runs.adapted import adapted_to, write_adapted
from securetm.runs.finished import FinishedRun, load, model_of
from securetm.stages import Unwatched

from .private import private_plan


@pytest.fixture(scope="module")
def run(five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    here = tmp_path_factory.mktemp("released")
    folder = begin(here / "run", private_plan(here, "masked", model={"name": "lda", "n_topics": 3}, training__rounds=2), five)
    execute(folder, Unwatched(), comparison=False)
    return folder


def test_the_model_and_its_topics_may_leave_and_lie_nowhere_else(run: RunFolder) -> None:
    assert {path.name for path in (run.path / "release").iterdir()} == {"model.safetensors", "topics.csv"}
    models = {path.parent.name for path in run.path.rglob("model.safetensors")}
    assert models == {"release"}, "a model lies beside files that must stay"


def test_the_topics_in_it_are_the_models(run: RunFolder) -> None:
    head, *lines = (run.path / "release" / "topics.csv").read_text("utf-8").splitlines()
    assert head == "topic,rank,word,weight"
    words = [line.split(",")[2] for line in lines if line.startswith("1,")]
    assert words[:10] == load(run.path).topics(10)[1]


def test_what_was_released_is_read_without_the_run(run: RunFolder, tmp_path: Path) -> None:
    whole = load(run.path)
    (tmp_path / "received").mkdir()
    (tmp_path / "received" / "model.safetensors").write_bytes((run.path / "release" / "model.safetensors").read_bytes())
    assert np.array_equal(load(tmp_path / "received").components_, whole.components_)


def test_an_adapted_model_may_not_leave(run: RunFolder, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    finished = FinishedRun.open(run.path)
    adapted, figures = adapted_to(finished, next(iter(five.values())), None, Unwatched())
    write_adapted(tmp_path / "adapted", finished, adapted, figures)
    assert not (tmp_path / "adapted" / "release").exists()
    assert model_of(tmp_path / "adapted") == tmp_path / "adapted" / "model.safetensors"
    assert load(tmp_path / "adapted").components_.shape[1] == len(finished.vocabulary)
