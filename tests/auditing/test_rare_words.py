"""Words of one document alone: a table of words names them all, and noise in sums of words hides them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.auditing.attacks.vocabulary import TOLD, TOLD_RIGHT, AskedWords, allowed_of_told, surely_there
from securetm.auditing.views import ReadVector, RoundQuestion
from securetm.contracts import Budget, Unit
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder
from securetm.federation.questions import JOINT
from securetm.models.questions.word_sketch import packed
from securetm.models.questions.word_sums import CELLS, OPEN, WordSums, bits_of, opening
from securetm.testing.query_laws import summed

from .conftest import PARTIES, made_run
from .tried import tried

EFFORT = {"rounds": 1, "words": 60}
FREQUENT = ("river", "lake", "stone", "bridge", "water", "court", "judge", "window", "garden", "winter")


def _document(rng: np.random.Generator, number: int) -> str:
    """Some frequent English words, and sometimes a code that stands nowhere else."""
    words = rng.choice(FREQUENT, 5)
    return " ".join([*words, *([f"code{number:04d}x"] if number % 3 == 0 else [])])


@pytest.fixture(scope="module")
def parties() -> Mapping[str, Corpus]:
    rng = np.random.default_rng(1)
    texts = {name: [_document(rng, 1000 * at + n) for n in range(120)] for at, name in enumerate(PARTIES)}
    return {name: Corpus.from_strings(own, name=name) for name, own in texts.items()}


def _run(place: Path, parties: Mapping[str, Corpus], profile: str) -> RunFolder:
    tables: dict[str, Any] = {
        "profile": profile,
        "model": {"name": "lda", "n_topics": 2, "sweeps": 1},
        "training": {"rounds": 1},
        "vocabulary": {"min_documents": 1, "max_share": 1.0},
    }
    return made_run(place / profile, parties, tables)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["open", "masked"])
def test_a_list_or_a_table_names_words_of_one_document(profile: str, parties: Mapping[str, Corpus], tmp_path: Path) -> None:
    found = tried(_run(tmp_path, parties, profile), "rare_words", EFFORT)
    assert found.share(TOLD) == 1.0
    assert found.share(TOLD_RIGHT) == 1.0


@pytest.mark.parametrize(("noise", "told"), [(0.01, True), (3.0, False)])
def test_only_noise_in_sums_of_words_hides_them(noise: float, told: bool, parties: Mapping[str, Corpus]) -> None:
    """The first sum is about all words. In the second none of these is open, so it says nothing of them."""
    rng, whole = np.random.default_rng(0), Corpus.concat(list(parties.values()))
    codes = tuple(word for word in whole.vocabulary if word.startswith("code"))
    asked = AskedWords((*codes, *(code[::-1] for code in codes)), FREQUENT)
    sums = [
        ReadVector(RoundQuestion(serial, JOINT, serial, state, WordSums().terms), "", {"cells": cells})
        for serial, state in enumerate(({}, opening(bits_of(packed(FREQUENT)))))
        for cells in (summed(WordSums(state.get(OPEN)), whole, radius=1.0) + rng.normal(0, noise, CELLS),)
    ]
    found = surely_there(asked, sums)
    assert (found[: len(codes)].mean() > 0.9) == told
    assert found[: len(codes)].mean() in (pytest.approx(1.0, abs=0.05), pytest.approx(0.0, abs=0.05))
    assert found[len(codes) :].mean() < 0.02


@pytest.mark.slow
def test_noise_in_the_sums_of_a_run_hides_them(parties: Mapping[str, Corpus], tmp_path: Path) -> None:
    found = tried(_run(tmp_path, parties, "dp-distributed"), "rare_words", EFFORT)
    assert found.hits(TOLD) <= 1
    most = allowed_of_told(TOLD, Budget(Unit.DOCUMENT, 8.0, 1e-5))
    assert 0 < most < 0.01
    assert (
        allowed_of_told(TOLD, Budget(Unit.WORD, 8.0, 1e-5))
        == allowed_of_told(TOLD_RIGHT, Budget(Unit.DOCUMENT, 1.0, 1e-5))
        == 1.0
    )
