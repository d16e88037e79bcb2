"""LDA in a federation: what all parties learn together is what one machine would, count for count, hidden or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.corpus.corpus import Corpus
from securetm.errors import Failed
from securetm.federation.document_minimum import TooFewToTakePart
from securetm.federation.folder import begin, reopen
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.models.given_documents import BagOfWords
from securetm.models.lda.lda import LDA
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from .conftest import small_plan

ROUNDS = 10


def plan_of(profile: str) -> Plan:
    return small_plan(profile=profile, model={"name": "lda", "n_topics": 4}, training__rounds=ROUNDS)


def learned(folder: Path) -> Mapping[str, Any]:
    return read_arrays(folder / "release/model.safetensors", bare=True)[0]


def together(parties: Mapping[str, Corpus], plan: Plan, vocabulary: tuple[str, ...]) -> BagOfWords:
    """The documents that the parties train on, end to end."""
    agreed = [corpus.project(vocabulary) for corpus in parties.values()]
    parts = [part.select(part.lengths() > 0).split(1 - plan.training.held_out, plan.seed)[0] for part in agreed]
    counts = sparse.vstack([part.counts for part in parts], format="csr")
    return BagOfWords(counts, vocabulary, np.concatenate([part.keys for part in parts]))


@pytest.mark.parametrize("profile", ["open", "masked"])
def test_a_federation_counts_what_one_machine_counts(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(profile)
    result = execute(begin(tmp_path / "run", plan, five), Unwatched())
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    model = agree(plan).model
    assert isinstance(model, LDA)
    documents = together(five, plan, vocabulary)
    alone = model.fit(documents, epochs=ROUNDS, seed=plan.seed).learned.state
    federated = learned(tmp_path / "run")
    np.testing.assert_array_equal(federated["counts"], alone["counts"])
    np.testing.assert_array_equal(federated["counts"].sum(axis=0), documents.counts.sum(axis=0))
    assert result["model"] == "lda"
    assert result["quality"]["held_out"] < min(figures["held_out_everywhere"] for figures in result["alone"].values())


class PressedControlC(Unwatched):
    def step(self, done: int) -> None:
        if done == 4:
            raise KeyboardInterrupt


@pytest.mark.parametrize("profile", ["open", "masked"])
def test_an_interrupted_run_goes_on_to_the_same_counts(profile: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(profile)
    execute(begin(tmp_path / "unbroken", plan, five), Unwatched())
    folder = begin(tmp_path / "broken", plan, five)
    with pytest.raises(Failed, match="the run was interrupted after round"):
        execute(folder, PressedControlC())
    assert execute(reopen(tmp_path / "broken"), Unwatched())["rounds"] == ROUNDS
    np.testing.assert_array_equal(learned(tmp_path / "broken")["counts"], learned(tmp_path / "unbroken")["counts"])


def test_a_party_with_none_of_the_agreed_words_changes_nothing(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    stranger = Corpus.from_strings(["Quince brine anvil.", "Zither gable."], name="zzz")  # each word in one document only
    for name, parties in (("five", five), ("six", {**five, "zzz": stranger})):
        execute(begin(tmp_path / name, plan_of("open"), parties), Unwatched())
    np.testing.assert_array_equal(learned(tmp_path / "five")["counts"], learned(tmp_path / "six")["counts"])


def test_a_party_without_any_document_is_told_by_name(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    empty = {**five, "zzz": next(iter(five.values())).select(np.arange(0))}
    with pytest.raises(TooFewToTakePart):
        execute(begin(tmp_path / "run", plan_of("open"), empty), Unwatched())
