"""Moments in a federation: to the last bit what one machine learns, one round whatever a plan says, and a budget by unit."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.models.moments import Moments
from securetm.plans.agreement import agree
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import small_plan
from .private import private_plan
from .test_lda_vi_runs import PRIVATE, together

EXACT = ("topics", "prevalence", "spectrum", "beyond")


@pytest.mark.parametrize("profile", ["open", "masked", "masked_strict"])
def test_a_federation_learns_to_the_last_bit_what_one_machine_learns(
    profile: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = small_plan(profile=profile, model={"name": "moments", "n_topics": 4}, training__rounds=5)
    result = execute(begin(tmp_path / "run", plan, five), Unwatched())
    assert result["rounds"] == 1
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    model = agree(plan).model
    assert isinstance(model, Moments)
    alone = model.fit(together(five, plan, vocabulary), epochs=1, seed=plan.seed).learned.state
    federated = read_arrays(tmp_path / "run/release/model.safetensors", bare=True)[0]
    for name in EXACT:
        np.testing.assert_array_equal(federated[name], alone[name])
    assert np.isclose(sum(result["topic_prevalence"]), 1.0, atol=1e-3)
    assert result["topics_beyond_noise"] >= 2


@pytest.mark.parametrize(
    ("profile", "unit"),
    quick(product(PRIVATE, ("document", "person")), ("dp-central", "person"), ("dp-distributed", "document")),
)
def test_a_budget_is_spent_by_document_or_person(profile: str, unit: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    if unit == "person":
        five = {name: corpus.replace(persons=np.arange(len(corpus)) // 2) for name, corpus in five.items()}
    settings = {"model": {"name": "moments", "n_topics": 3}, "privacy__epsilon": 8.0, "training__rounds": 4}
    plan = private_plan(tmp_path, profile, privacy__unit=unit, **settings)
    result = execute(begin(tmp_path / "run", plan, five), Unwatched())
    assert result["rounds"] == 1
    assert all(7.0 < spent["epsilon"] <= 8.0 and spent["unit"] == unit for spent in result["spent"])
    assert len(result["topics"]) == 3
