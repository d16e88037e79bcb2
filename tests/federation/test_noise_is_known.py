"""Noise that is known: few documents behind much of it predict as a guess does, and a model remembers words noised at home."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm import federate
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal
from securetm.federation.folder import RunFolder, begin
from securetm.federation.simulation.simulation import execute
from securetm.models.stored_model import StoredModel
from securetm.plans.profiles import model_class
from securetm.stages import Unwatched

from ..quick_part import quick
from .private import private_plan

WORDS = 1500


@pytest.fixture(scope="module")
def parties() -> Mapping[str, Corpus]:
    nodes = lda_nodes(LdaNodes(nodes=1, topics=20, alpha=0.1, words=WORDS, documents=500, shortest=15, longest=30), seed=0)
    return equal(next(iter(nodes.train.values())), 5, seed=0)


@pytest.fixture
def words(parties: Mapping[str, Corpus], tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(next(iter(parties.values())).vocabulary), "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "profile"),
    quick(
        [("lda", "dp-distributed"), ("lda", "dp-local"), ("lda-vi", "dp-central"), ("sentence-lda", "dp-distributed")],
        ("sentence-lda", "dp-distributed"),
    ),
)
def test_few_documents_behind_much_noise_predict_as_well_as_a_guess(
    model: str, profile: str, parties: Mapping[str, Corpus], words: Path, tmp_path: Path
) -> None:
    """Five hundred documents at epsilon 1 teach next to nothing of so many words in twenty topics."""
    settings = {"profile": profile, "model.name": model, "model.n_topics": 20, "training.rounds": 2, "privacy.epsilon": 1.0}
    listed = {"vocabulary.source": "file", "origins.vocabulary": "made up", "vocabulary.file": str(words)}
    result = federate(parties, tmp_path / "run", {**settings, **listed}, comparison=False)
    assert result["rounds"] == 2
    assert np.isfinite(result["quality"]["held_out"])
    assert result["quality"]["held_out"] <= 1.01 * WORDS


def trained(place: Path, profile: str, model: str, parties: Mapping[str, Corpus], rounds: int = 20, **more: Any) -> RunFolder:
    """A finished run."""
    choice = {"name": model, "n_topics": 4}
    folder = begin(place / "run", private_plan(place, profile, model=choice, training__rounds=rounds, **more), parties)
    execute(folder, Unwatched(), comparison=False)
    return folder


@pytest.mark.parametrize("model", quick(["lda", "lda-vi"], "lda-vi"))
def test_the_model_remembers_that_words_were_noised_at_home(model: str, five: Mapping[str, Corpus], tmp_path: Path) -> None:
    """So it predicts by its table as it is, also when it is read again; parties are asked about the table alone."""
    folder = trained(tmp_path, "iftm", model, five, privacy__epsilon=5.0)
    made, state, words = StoredModel.open(folder.model).model(model_class)
    exact = {name: array for name, array in state.items() if name != "words_noised"}
    assert set(state) - set(exact) == {"words_noised"}
    assert set(made.for_party(state, "north")) == set(made.for_party(exact, "north"))
    assert made.fits(state, len(words))
    assert not made.fits({**state, "words_noised": np.ones(2)}, len(words))
    gained = 0.0
    for corpus in five.values():
        seen, unseen = corpus.project(words).halves(0)
        gained += float(np.sum(made.log_likelihood(state, seen, unseen) - made.log_likelihood(exact, seen, unseen)))
    assert gained > 0


def test_without_noise_on_words_no_model_says_so(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    folder = trained(tmp_path, "open", "lda", corpora, rounds=2)
    assert "words_noised" not in StoredModel.open(folder.model).model(model_class)[1]
