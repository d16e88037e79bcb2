"""What comes of a training lands at every party: the model and its words, checked there against the agreement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import execute
from securetm.federation.wire import wire
from securetm.runs.finished import load
from securetm.stages import Unwatched

from .private import private_plan
from .staged import WORDS, Stage


@pytest.mark.parametrize("profile", ["open", "masked", "bfv"])
def test_every_party_holds_the_finished_model(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, profile, model={"name": "lda", "n_topics": 3}, training__rounds=2)
    folder = begin(tmp_path / "run", plan, five)
    execute(folder, Unwatched(), comparison=False)
    whole = folder.model.read_bytes()
    for name in folder.members:
        assert (folder.party(name) / "release/model.safetensors").read_bytes() == whole
        assert (folder.party(name) / "vocabulary.txt").read_bytes() == folder.words.read_bytes()


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


def test_no_model_comes_before_the_words(uninvited: Stage) -> None:
    assert uninvited.says(uninvited.played.invite()) == wire.Accepted()
    assert uninvited.says(wire.Finish({}, 1)) == wire.Refusal("BadState")


def test_a_training_without_rounds_leaves_no_model(stage: Stage) -> None:
    assert stage.says(wire.Finish(finished(stage), 0)) == wire.Accepted()
    assert not (stage.party.store.folder / "release/model.safetensors").exists()
    assert stage.party.finished == 0


def test_a_state_beyond_the_bound_is_not_read(stage: Stage) -> None:
    bound = stage.party.limits.of_bodies()["finish"]
    assert stage.says(wire.Finish({"weights": np.zeros(bound, dtype=np.uint8)}, 1)) == wire.Refusal("Malformed")
