"""Rounds that follow the corpus: as many as the plan's epochs are over all parties' documents, at most those it allows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import execute
from securetm.plans.recommend import MOST_ROUNDS_OF_EPOCHS, plan_from_tables
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from .conftest import small_plan

DOCUMENTS = 300  # of the five parties
ROUNDS = 9  # 3 epochs over the 240 documents that are trained on, 80 in a round


def plan_of(**more: Any) -> Plan:
    """Three epochs, of batches of 16."""
    return small_plan(training={"epochs": 3, "held_out": 0.2, **more.pop("training", {})}, **more)


def trained(five: Mapping[str, Corpus], place: Path, plan: Plan) -> Mapping[str, Any]:
    return execute(begin(place, plan, five), Unwatched(), comparison=False)


@pytest.mark.parametrize("profile", ["masked"])
def test_rounds_follow_the_documents_of_all_parties(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    assert sum(map(len, five.values())) == DOCUMENTS
    result = trained(five, tmp_path / "run", plan_of(profile=profile, model__batch=25 if profile == "masked" else 16))
    assert (result["rounds"], result["stopped"]) == (6 if profile == "masked" else ROUNDS, "epochs")


HIDDEN: dict[str, dict[str, Any]] = {
    "a budget": {"profile": "dp-distributed", "model": {"name": "lda-vi"}},
    "a public list": {"profile": "open", "model": {"name": "prodlda"}},
    "only the parties open": {"profile": "bfv", "model": {"name": "prodlda"}},
}


@pytest.mark.parametrize("case", HIDDEN)
def test_where_nobody_learns_the_number_of_documents_rounds_are_fixed_before(case: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("river\ncourt\n", "utf-8")
    listed = {} if case == "a budget" else {"vocabulary": {"source": "file", "file": str(words)}}
    tables = {**HIDDEN[case], **listed}
    fixed = plan_from_tables(tables, "a test").training
    assert (fixed.epochs, fixed.rounds < MOST_ROUNDS_OF_EPOCHS) == (0.0, True)
    with pytest.raises(BadSetting, match="needs the number of documents"):
        plan_from_tables({**tables, "training": {"epochs": 3}}, "a test")
