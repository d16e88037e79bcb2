"""NMF and FedNMF in a federation: what is learned, under which profiles, and that topic weights outlive a kill."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin, reopen
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.models.nmf import NMF
from securetm.plans.agreement import agree
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import small_plan
from .killed_run import ended
from .private import private_plan
from .test_lda_vi_runs import PRIVATE, together
from .test_simulation import untrained

ROUNDS = 6
UNITS = ("document", "person")
STEPS: tuple[dict[str, Any], ...] = ({}, {"server": "yogi"}, {"mutual_information": 0.0, "server": "adagrad"})


@pytest.mark.parametrize(("profile", "apart"), [("open", 1e-9), ("masked", 1e-2)])
def test_a_federation_learns_what_one_machine_learns(
    profile: str, apart: float, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = small_plan(profile=profile, model={"name": "nmf", "n_topics": 4}, training__rounds=ROUNDS)
    result = execute(begin(tmp_path / "run", plan, five), Unwatched())
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    model = agree(plan).model
    assert isinstance(model, NMF)
    alone = model.fit(together(five, plan, vocabulary), epochs=ROUNDS, seed=plan.seed).learned.state
    federated = read_arrays(tmp_path / "run/release/model.safetensors", bare=True)[0]
    np.testing.assert_allclose(federated["weights"], alone["weights"], atol=apart)
    assert result["quality"]["held_out"] < min(figures["held_out_everywhere"] for figures in result["alone"].values())


@pytest.mark.parametrize(
    ("profile", "unit"),
    quick(product(PRIVATE, UNITS), ("dp-local", "person"), ("dp-central", "document"), ("dp-distributed", "document")),
)
def test_a_budget_is_spent_by_document_or_person(profile: str, unit: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    if unit == "person":
        five = {name: Corpus.from_tokens(
            corpus.tokens, corpus.token_ends, corpus.vocabulary, persons=[f"{i // 2}" for i in range(len(corpus))], name=name
        ) for name, corpus in five.items()}  # fmt: skip
    settings = {"model": {"name": "nmf", "n_topics": 3}, "privacy__epsilon": 8.0, "training__rounds": ROUNDS}
    result = execute(
        begin(tmp_path / "run", private_plan(tmp_path, profile, privacy__unit=unit, **settings), five), Unwatched()
    )
    assert all(7.0 < spent["epsilon"] <= 8.0 and spent["unit"] == unit for spent in result["spent"])
    assert len(result["topics"]) == 3


@pytest.mark.parametrize(
    ("profile", "settings"), quick(product(("open", "masked"), STEPS), *zip(("open", "masked", "open"), STEPS, strict=True))
)
def test_local_steps_learn(profile: str, settings: dict[str, Any], five: Mapping[str, Corpus], tmp_path: Path) -> None:
    model = {"name": "fednmf", "n_topics": 4, "local_epochs": 2, **settings}
    plan = small_plan(profile=profile, model=model, training__rounds=12)
    result = execute(begin(tmp_path / "run", plan, five), Unwatched())
    assert result["rounds"] == 12
    assert result["quality"]["held_out"] < 0.9 * untrained(plan, tmp_path / "run")


@pytest.mark.parametrize(("moment", "moments"), [("round", 4), pytest.param("fsync", 26, marks=pytest.mark.slow)])
def test_topic_weights_outlive_a_kill(moment: str, moments: int, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """Parties go on from the weights of their documents that they had, so the model has the same bytes."""
    plan = small_plan(model={"name": "fednmf", "n_topics": 3, "local_epochs": 2, "server": "adam"}, training__rounds=8)
    execute(begin(tmp_path / "unbroken", plan, dict(sorted(five.items()))), Unwatched())
    for name, corpus in five.items():
        corpus.save(tmp_path / f"{name}.npz")
    settings = json.dumps({name: value for name, value in plan.tables().items() if name != "tokeniser"})
    assert ended(tmp_path / "killed", "begin", moment, moments, str(tmp_path), settings) == -signal.SIGKILL
    execute(reopen(tmp_path / "killed"), Unwatched())
    one, other = (read_arrays(tmp_path / run / "release/model.safetensors", bare=True)[0] for run in ("unbroken", "killed"))
    for name, array in one.items():
        np.testing.assert_array_equal(other[name], array)
