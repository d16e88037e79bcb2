"""Which party holds a subject: told from each party's own topics, about as well behind noise on words, and not from sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from securetm.auditing.attacks.party_inference import HOLDER, SHARE, shares_of
from securetm.auditing.parts.shares import noise_of
from securetm.auditing.runs import Demonstrations
from securetm.plans.profiles import read_profile
from securetm.stages import Unwatched

from .tried import Tried, settings, tried

EFFORT = {"rounds": 1, "subjects": 100}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Demonstrations:
    """One round of models that count."""
    return Demonstrations(tmp_path_factory.mktemp("runs"), Unwatched())


def _tried(runs: Demonstrations, profile: str, model: str, documents: Path, helpers: int = 0) -> Tried:
    more = {"model__sweeps": 3} if model.endswith("matched") else {}
    plan = settings(documents, model__name=model, training__rounds=1, **more)
    return tried(runs.run(profile, plan), "property_inference", EFFORT, helpers=helpers)


@pytest.mark.parametrize("model", ["lda-matched", "lda"])
def test_in_the_open_every_share_is_told(model: str, runs: Demonstrations, documents_file: Path) -> None:
    found = _tried(runs, "open", model, documents_file)
    assert found.share(HOLDER) == 1.0
    assert found.share(SHARE) == 1.0
    assert found.share(HOLDER, by_chance=True) < 0.5


def test_noise_on_words_hardly_hides_what_a_party_writes_about(runs: Demonstrations, documents_file: Path) -> None:
    found = _tried(runs, "iftm", "lda-matched", documents_file)
    assert found.share(HOLDER) >= 0.6
    assert found.share(SHARE) >= 0.6
    assert found.share(SHARE, by_chance=True) < 0.2


def test_a_subject_is_words_that_stand_together(runs: Demonstrations, documents_file: Path) -> None:
    found = _tried(runs, "open", "lda-matched", documents_file)
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
