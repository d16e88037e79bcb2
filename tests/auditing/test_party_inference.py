"""Whose a document or a subject is: told from each party's own topics, also behind noise on words, and not from sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attack import Proportion
from securetm.auditing.attacks.party_inference import HOLDER, SHARE, SOURCE, fits, shares_of
from securetm.auditing.parts.shares import noise_of
from securetm.auditing.runs import Demonstrations
from securetm.auditing.verdicts import clopper_pearson
from securetm.plans.profiles import read_profile
from securetm.stages import Unwatched

from .conftest import PARTIES
from .tried import Tried, settings, tried

OF_SOURCE = {"rounds": 1, "documents": 200}
CHANCE = 1 / len(PARTIES)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """One round of models that count."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def _tried(name: str, effort: dict[str, int], runs: Demonstrations, profile: str, model: str, documents: Path) -> Tried:
    more = {"model__sweeps": 3} if model.endswith("matched") else {}
    plan = settings(documents, model__name=model, training__rounds=1, **more)
    return tried(runs.run(profile, plan), name, effort)


@pytest.mark.parametrize(("profile", "model"), [("open", "lda-matched"), ("iftm", "lda-matched"), ("open", "lda")])
def test_a_partys_own_topics_tell_its_documents(profile: str, model: str, runs: Demonstrations, documents_file: Path) -> None:
    """The parties' documents here are all of one kind: what tells them apart is which words each happens to use."""
    found = _tried("source_inference", OF_SOURCE, runs, profile, model, documents_file)
    assert found.share(SOURCE) >= 0.8
    assert found.share(SOURCE, by_chance=True) < 0.4


def test_masked_vectors_tell_no_more_than_random_numbers(runs: Demonstrations, documents_file: Path) -> None:
    """The interval is so wide that random masks are outside once in 10^9 draws."""
    counted = _tried("source_inference", OF_SOURCE, runs, "masked", "lda", documents_file).told.measures[SOURCE]
    assert isinstance(counted, Proportion)
    low, high = clopper_pearson(counted.hits, counted.of, 1 - 1e-9)
    assert low <= CHANCE <= high


def test_the_question_holds_documents_and_not_whose_they_are(runs: Demonstrations, documents_file: Path) -> None:
    found = _tried("source_inference", OF_SOURCE, runs, "open", "lda-matched", documents_file)
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


# ---- subjects --------------------------------------------------------------------------------------------------------


OF_SUBJECTS = {"rounds": 1, "subjects": 100}


@pytest.mark.parametrize("model", ["lda-matched", "lda"])
def test_in_the_open_every_share_is_told(model: str, runs: Demonstrations, documents_file: Path) -> None:
    found = _tried("property_inference", OF_SUBJECTS, runs, "open", model, documents_file)
    assert found.share(HOLDER) == 1.0
    assert found.share(SHARE) == 1.0
    assert found.share(HOLDER, by_chance=True) < 0.5


def test_noise_on_words_hardly_hides_what_a_party_writes_about(runs: Demonstrations, documents_file: Path) -> None:
    found = _tried("property_inference", OF_SUBJECTS, runs, "iftm", "lda-matched", documents_file)
    assert found.share(HOLDER) >= 0.6
    assert found.share(SHARE) >= 0.6
    assert found.share(SHARE, by_chance=True) < 0.2


def test_a_subject_is_words_that_stand_together(runs: Demonstrations, documents_file: Path) -> None:
    found = _tried("property_inference", OF_SUBJECTS, runs, "open", "lda-matched", documents_file)
    assert len(found.view.question) == 100
    everything = np.concatenate([np.asarray(held.todense()) for held in found.truth.held.values()]) > 0
    for subject in found.view.question:
        first, *others = subject
        assert len(set(subject)) == 5
        with_it = everything[everything[:, first]].sum(axis=0)
        assert with_it[first] >= 3  # a word of several documents
        assert all(with_it[word] > 0 for word in others)


def test_what_noise_adds_on_average_is_taken_off() -> None:
    """Slots that hold one word each, and as much noise on every word."""
    rng, noise = np.random.default_rng(0), noise_of(read_profile("iftm"), 40).mean
    assert 3.3e-4 < noise < 3.4e-4  # exp(-8), as the noise is whole and cut at a threshold below 1
    real = np.zeros((1, 400))
    real[0, :20] = 1000.0
    noised = real + rng.poisson(noise * real.sum(), real.shape)
    (told,) = shares_of([np.arange(5)], {"one": noised}, noise)["one"]
    (plain,) = shares_of([np.arange(5)], {"one": noised})["one"]
    assert abs(told - 0.25) < 0.005 < abs(plain - 0.25)
