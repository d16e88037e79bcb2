"""SentenceLDA in a federation: what all parties learn together is what one machine would, count for count, hidden or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import Failed
from securetm.federation.folder import begin, reopen
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.models.lda.sentence_lda import SentenceLDA
from securetm.models.model_errors import NoSentences
from securetm.plans.agreement import agree
from securetm.plans.schema import Plan
from securetm.stages import Unwatched

from .conftest import FIVE, SHARED, small_plan

ROUNDS = 8
PROFILES = pytest.mark.parametrize("profile", ["open", "masked"])


def plan_of(profile: str, **model: Any) -> Plan:
    return small_plan(profile=profile, model={"name": "sentence-lda", "n_topics": 4, **model}, training__rounds=ROUNDS)


def texts(subject: list[str], documents: int, seed: int) -> list[str]:
    """Documents of a few sentences, each either about a subject or about what everybody talks about."""
    rng = np.random.default_rng(seed)

    def sentence() -> str:
        words = subject if rng.random() < 0.5 else SHARED
        return " ".join(rng.choice(words, size=int(rng.integers(2, 7)))).capitalize() + "."

    return [" ".join(sentence() for _ in range(rng.integers(2, 6))) for _ in range(documents)]


@pytest.fixture(scope="module")
def speakers() -> Mapping[str, Corpus]:
    """Five parties whose documents have sentences."""
    return {name: Corpus.from_strings(texts(FIVE[name], 60, n), name=name) for n, name in enumerate(FIVE)}


def learned(folder: Path) -> Mapping[str, Any]:
    return read_arrays(folder / "release/model.safetensors", bare=True)[0]


def together(parties: Mapping[str, Corpus], plan: Plan, vocabulary: tuple[str, ...]) -> Corpus:
    """The documents that the parties train on, end to end, each with its sentences."""
    agreed = [corpus.project(vocabulary) for corpus in parties.values()]
    parts = [part.select(part.lengths() > 0).split(1 - plan.training.held_out, plan.seed)[0] for part in agreed]
    return Corpus.concat(parts).project(vocabulary)


@pytest.mark.parametrize(("profile", "sampler"), [("open", "gibbs"), ("open", "mh"), ("masked", "auto")])
def test_a_federation_counts_what_one_machine_counts(
    profile: str, sampler: str, speakers: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = plan_of(profile, sampler=sampler)
    result = execute(begin(tmp_path / "run", plan, speakers), Unwatched())
    vocabulary = tuple((tmp_path / "run/coordinator/vocabulary.txt").read_text("utf-8").split("\n"))
    model = agree(plan).model
    assert isinstance(model, SentenceLDA)
    documents = together(speakers, plan, vocabulary)
    assert documents.sentence_ends is not None
    assert len(documents.sentence_ends) > 2 * len(documents)
    alone = model.fit(documents, epochs=ROUNDS, seed=plan.seed).learned.state
    federated = learned(tmp_path / "run")
    np.testing.assert_array_equal(federated["counts"], alone["counts"])
    np.testing.assert_array_equal(federated["counts"].sum(axis=0), documents.counts.sum(axis=0))
    assert result["model"] == "sentence-lda"
    assert result["quality"]["held_out"] < min(figures["held_out_everywhere"] for figures in result["alone"].values())


class PressedControlC(Unwatched):
    def step(self, done: int) -> None:
        if done == 3:
            raise KeyboardInterrupt


@PROFILES
def test_an_interrupted_run_goes_on_to_the_same_counts(profile: str, speakers: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = plan_of(profile)
    execute(begin(tmp_path / "unbroken", plan, speakers), Unwatched())
    folder = begin(tmp_path / "broken", plan, speakers)
    with pytest.raises(Failed, match="the run was interrupted after round"):
        execute(folder, PressedControlC())
    assert execute(reopen(tmp_path / "broken"), Unwatched())["rounds"] == ROUNDS
    np.testing.assert_array_equal(learned(tmp_path / "broken")["counts"], learned(tmp_path / "unbroken")["counts"])


def test_a_party_with_none_of_the_agreed_words_changes_nothing(speakers: Mapping[str, Corpus], tmp_path: Path) -> None:
    stranger = Corpus.from_strings(["Quince brine anvil.", "Zither gable."], name="zzz")  # each word in one document only
    for name, parties in (("five", speakers), ("six", {**speakers, "zzz": stranger})):
        execute(begin(tmp_path / name, plan_of("open"), parties), Unwatched())
    np.testing.assert_array_equal(learned(tmp_path / "five")["counts"], learned(tmp_path / "six")["counts"])


def test_a_party_that_has_bare_counts_is_told_by_name(speakers: Mapping[str, Corpus], tmp_path: Path) -> None:
    north = speakers["north"]
    bare = Corpus.from_counts(north.counts, north.vocabulary, name="north")
    with pytest.raises(NoSentences):
        execute(begin(tmp_path / "run", plan_of("open"), {**speakers, "north": bare}), Unwatched())
