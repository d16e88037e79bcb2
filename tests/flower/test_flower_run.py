"""`flwr run` over a real SuperLink and real SuperNodes trains the very model that the simulation trains."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from securetm.federation.flower.party_socket import answers
from securetm.federation.folder import begin
from securetm.federation.party.joining import prepare
from securetm.federation.simulation.simulation import train
from securetm.models.tensor_file import unpacked
from securetm.plans.recommend import whole_plan
from securetm.stages import Unwatched
from securetm.trial.files import TrialFolder, make_trial

from .deployed import ROOT, deployed, needs_flower, process, until

SERVER = "securetm.federation.flower.server_app"


@needs_flower
@pytest.mark.slow
def test_five_organisations_end_with_the_model_of_the_simulation(tmp_path: Path) -> None:
    trial = made(tmp_path / "trial")
    simulated = of_the_simulation(trial, tmp_path / "simulated")
    sockets = {name: trial.party(name) / "party.sock" for name in trial.parties}
    with ExitStack() as running:
        for name, path in sockets.items():
            join = [sys.executable, "-m", "securetm.cli.main", "join", str(trial.file(name)), "--socket", str(path), "--json"]
            running.enter_context(process(tmp_path / f"{name}.log", join, {**os.environ, "PYTHONPATH": str(ROOT)}))
        for name, path in sockets.items():
            until(lambda path=path: answers(path), lambda name=name: (tmp_path / f"{name}.log").read_text("utf-8"))
        flower = running.enter_context(deployed(tmp_path / "flower", list(sockets.values())))
        said = flower.run(SERVER, trial.plan)
    assert (trial.run / "result.json").is_file(), said
    same(trial.run / "release" / "model.safetensors", simulated)


def made(path: Path) -> TrialFolder:
    """A trial of two rounds, with a short list of words."""
    trial = make_trial(path, "masked", 2, Unwatched())
    for plan in (trial.plan, *(trial.party(name) / "plan.toml" for name in trial.parties)):
        text = plan.read_text("utf-8")
        assert "deadline = 60 " in text
        plan.write_text(text.replace("deadline = 60 ", "deadline = 900 "), "utf-8")  # a busy machine takes minutes
    return trial


def of_the_simulation(trial: TrialFolder, path: Path) -> Path:
    """The model of the same plan over the same documents, all in this process."""
    corpora = {name: prepare(trial.file(name), lambda _: None, Unwatched()).corpus for name in trial.parties}
    folder = begin(path, whole_plan(trial.plan, {}), corpora)
    train(folder, Unwatched())
    return folder.model


def same(one: Path, other: Path) -> None:
    (_, left), (_, right) = unpacked(one), unpacked(other)
    assert left.keys() == right.keys()
    assert all(np.array_equal(left[name], right[name]) for name in left)
