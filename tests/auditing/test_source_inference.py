"""Whose a document is: told from each party's own topics, also behind noise on single words, and not from sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attack import Proportion
from securetm.auditing.attacks.party_inference import SOURCE, fits
from securetm.auditing.runs import Demonstrations
from securetm.auditing.verdicts import clopper_pearson
from securetm.stages import Unwatched

from .conftest import PARTIES
from .tried import Tried, settings, tried

EFFORT = {"rounds": 1, "documents": 200}
CHANCE = 1 / len(PARTIES)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """One round of models that count."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def _tried(runs: Demonstrations, profile: str, model: str, documents: Path, helpers: int = 0) -> Tried:
    more = {"model__sweeps": 3} if model.endswith("matched") else {}
    plan = settings(documents, model__name=model, training__rounds=1, **more)
    return tried(runs.run(profile, plan), "source_inference", EFFORT, helpers=helpers)


@pytest.mark.parametrize(("profile", "model"), [("open", "lda-matched"), ("iftm", "lda-matched"), ("open", "lda")])
def test_a_partys_own_topics_tell_its_documents(profile: str, model: str, runs: Demonstrations, documents_file: Path) -> None:
    """The parties' documents here are all of one kind: what tells them apart is which words each happens to use."""
    found = _tried(runs, profile, model, documents_file)
    assert found.share(SOURCE) >= 0.8
    assert found.share(SOURCE, by_chance=True) < 0.4


def test_masked_vectors_tell_no_more_than_random_numbers(runs: Demonstrations, documents_file: Path) -> None:
    """The interval is so wide that random masks are outside once in 10^9 draws."""
    counted = _tried(runs, "masked", "lda", documents_file).told.measures[SOURCE]
    assert isinstance(counted, Proportion)
    low, high = clopper_pearson(counted.hits, counted.of, 1 - 1e-9)
    assert low <= CHANCE <= high


def test_the_question_holds_documents_and_not_whose_they_are(runs: Demonstrations, documents_file: Path) -> None:
    found = _tried(runs, "open", "lda-matched", documents_file)
    assert found.view.question.shape == (200, len(found.truth.vocabulary))
    names = [name for name, _ in found.truth.answer]
    assert {names.count(name) for name in PARTIES} == {40}
    assert names != sorted(names)
    for name, counts in found.truth.answer[:5]:
        held = np.asarray(found.truth.held[name].todense())
        assert (held == np.asarray(counts).ravel()).all(axis=1).any()


def test_a_document_fits_the_topics_that_it_was_drawn_from() -> None:
    """Also one of two topics at once, which fits neither alone."""
    rng = np.random.default_rng(0)
    one, other = rng.dirichlet(np.full(50, 0.1), size=(2, 3))
    drawn = rng.multinomial(40, one.mean(axis=0), size=20).astype(float)
    assert (fits(drawn, 1000 * one) > fits(drawn, 1000 * other)).all()
