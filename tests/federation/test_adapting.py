"""A party adapts the shared model to its own documents: topics keep their numbers, and held-out documents choose nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import securetm
from securetm import federate
from securetm.contracts import Memory
from securetm.corpus.corpus import Corpus
from securetm.federation.party.alone import STAGES, Adapted, adapt, rounds_of_adapting, trained_on
from securetm.federation.simulation import comparison
from securetm.models.lda.lda import LDA
from securetm.models.lda.lda_vi import VariationalLDA
from securetm.models.lda.matched import MatchedLDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.reports.runs import quality
from securetm.runs import adapted as adapted_models
from securetm.runs.finished import FinishedRun
from securetm.stages import Unwatched

MODELS = (
    LDA(n_topics=2, sweeps=1),
    VariationalLDA(n_topics=2),
    ProdLDA(n_topics=2, hidden=8, batch=16),
    MatchedLDA(n_topics=2),
)


def nothing(done: int, of: int) -> None:
    """Shows no progress."""


@pytest.fixture(scope="module")
def shared() -> Mapping[str, Corpus]:
    """Two parties that talk of different things."""
    rng = np.random.default_rng(7)
    words = tuple(f"w{n:02}" for n in range(40))
    return {
        name: Corpus.from_counts(rng.multinomial(20, rng.dirichlet(np.full(20, 0.3)), 80) @ np.eye(20, 40, shift, int), words)
        for name, shift in (("low", 0), ("high", 20))
    }


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_adapting_never_predicts_own_documents_worse_than_not_adapting(model: Any, shared: Mapping[str, Corpus]) -> None:
    documents = shared["low"]
    start = model.start(documents.vocabulary, np.random.default_rng(0))
    state = model.shared(trained_on(model, start, shared["high"], range(4), 0, Memory(), nothing))
    steps: list[tuple[int, int]] = []
    adapted = adapt(model, state, documents, 4, 0, lambda *now: steps.append(now))
    assert adapted.stages == int(np.argmin(adapted.chosen_by)) > 0
    assert steps[-1][0] <= steps[-1][1] == rounds_of_adapting(4)
    assert len(adapted.chosen_by) == 1 + len(STAGES)
    assert adapted.model.fits(adapted.state, len(documents.vocabulary))
    again = adapt(model, state, documents, 4, 0, nothing)
    for name, array in adapted.state.items():
        np.testing.assert_array_equal(array, again.state[name])
    gained = adapted.facts()["own_topics"]
    assert gained == (2 if model.gains_topics else 0) or model.party_models


def test_a_run_shows_what_adapting_gives(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    settings = {"profile": "open", "model.name": "lda", "model.n_topics": 3, "training.rounds": 3}
    result = federate(corpora, tmp_path / "run", settings)
    assert set(result["adapted_at_party"]) == set(corpora)
    for place, name in enumerate(result["parties"], start=1):
        told = result["adapted_at_party"][name]
        assert np.isfinite(told["held_out"])
        assert np.isfinite(told["held_out_everywhere"])
        assert (told["shared_topics"], told["stages"] > 0) == (3, told["own_topics"] > 0)
        (file,) = (tmp_path / "run/parties").glob(f"{place:02}-*/adapted.safetensors")
        assert len(securetm.load(file).topics()) == told["shared_topics"] + told["own_topics"]


def test_what_adapting_made_worse_is_said_and_not_kept(
    corpora: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worse(model: Any, shared: Any, documents: Any, *_: Any) -> Adapted:
        """What adapting comes to that chose random topics."""
        return Adapted(model, model.start(documents.vocabulary, np.random.default_rng(1)), 3, 1, (2.0, 1.0))

    monkeypatch.setattr(comparison, "adapt", worse)
    monkeypatch.setattr(adapted_models, "adapt", worse)
    result = federate(
        corpora, tmp_path / "run", {"profile": "open", "model.name": "lda", "model.n_topics": 3, "training.rounds": 9}
    )
    for name, told in result["adapted_at_party"].items():
        assert (told["stages"], told["held_out"]) == (0, result["shared_at_party"][name]["held_out"])
    assert "Adapting helped no party" in quality(result).caption
    run = FinishedRun.open(tmp_path / "run")
    adapted, figures = adapted_models.adapted_to(run, next(iter(corpora.values())), None, Unwatched())
    assert adapted.stages == 0
    np.testing.assert_array_equal(run.model.topics(adapted.state), run.components_)
    assert figures["held_out"]["not_kept"]["held_out"] > figures["held_out"]["shared"]["held_out"]
