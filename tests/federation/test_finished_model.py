"""What comes of a training: the model and its words land at every party, checked there, and what may leave is a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import execute
from securetm.federation.wire import wire
from securetm.runs.adapted import adapted_to, write_adapted
from securetm.runs.finished import FinishedRun, load, model_of
from securetm.stages import Unwatched

from .private import private_plan
from .staged import WORDS, Stage


def test_every_party_holds_the_finished_model(run: RunFolder, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "bfv", model={"name": "lda", "n_topics": 3}, training__rounds=2)
    unseen = begin(tmp_path / "run", plan, five)  # by the coordinator
    execute(unseen, Unwatched(), comparison=False)
    for folder in (run, unseen):
        whole = folder.model.read_bytes()
        for name in folder.members:
            assert (folder.party(name) / "release/model.safetensors").read_bytes() == whole
            assert (folder.party(name) / "vocabulary.txt").read_bytes() == folder.words.read_bytes()


@pytest.mark.slow
def test_a_noised_model_is_read_again_at_every_party(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "dp-central", model={"name": "lda", "n_topics": 3}, training__rounds=2)
    folder = begin(tmp_path / "run", plan, five)
    execute(folder, Unwatched(), comparison=False)
    whole = load(folder.model)
    assert "noise" in whole.state
    for name in folder.members:
        assert np.array_equal(load(folder.party(name) / "release/model.safetensors").components_, whole.components_)


def finished(stage: Stage) -> dict[str, np.ndarray]:
    model = stage.played.questions.agreement.model
    return dict(model.start(WORDS, np.random.default_rng(0)))


def test_a_state_that_is_no_model_is_refused_and_nothing_is_written(stage: Stage) -> None:
    state = finished(stage)
    for wrong in (
        {},
        {**state, "more": np.zeros(1)},
        {**state, "weights": state["weights"][:-1]},
        {**state, "weights": np.full_like(state["weights"], np.nan)},
    ):
        assert stage.says(wire.Finish(wrong, 3)) == wire.Refusal("BadState")
    assert not (stage.party.store.folder / "release/model.safetensors").exists()
    assert stage.party.finished is None
    assert stage.says(wire.Finish(state, 3)) == wire.Accepted()
    assert stage.party.finished == 3


def test_a_state_beyond_the_bound_is_not_read(stage: Stage) -> None:
    bound = stage.party.limits.of_bodies()["finish"]
    assert stage.says(wire.Finish({"weights": np.zeros(bound, dtype=np.uint8)}, 1)) == wire.Refusal("Malformed")


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
