"""Whose a document or a subject is: told from each party's own topics, also behind noise on words, and not from sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks.party_inference import fits
from securetm.auditing.runs import Demonstrations
from securetm.stages import Unwatched

from .conftest import PARTIES
from .tried import Tried, settings, tried

OF_SOURCE = {"rounds": 1, "documents": 200}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """One round of models that count."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def _tried(name: str, effort: dict[str, int], runs: Demonstrations, profile: str, model: str, documents: Path) -> Tried:
    more = {"model__sweeps": 3} if model.endswith("matched") else {}
    plan = settings(documents, model__name=model, training__rounds=1, **more)
    return tried(runs.run(profile, plan), name, effort)


def test_the_question_holds_documents_and_not_whose_they_are(runs: Demonstrations, documents_file: Path) -> None:
    found = _tried("source_inference", OF_SOURCE, runs, "open", "lda-matched", documents_file)
    assert found.view.question.shape == (200, len(found.truth.vocabulary))
    names = [name for name, _ in found.truth.answer]
    assert {names.count(name) for name in PARTIES} == {40}
    assert names != sorted(names)
    for name, counts in found.truth.answer[:5]:
        held = np.asarray(found.truth.held[name].todense())
        assert (held == np.asarray(counts).ravel()).all(axis=1).any()


def test_a_document_without_words_fits_all_parties_alike() -> None:
    table = np.array([[5.0, 1.0, 0.0], [0.0, 2.0, 7.0]])
    found = fits(np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]]), table)
    assert found[0] < 0
    assert found[1] == 0
