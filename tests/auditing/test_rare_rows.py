"""Words that one document alone holds, out of sums over five parties, of a factorisation or of pairs; noise hides them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.auditing.attacks.rare_rows import COMPANIONS, FOUND, LINKED
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder

from .conftest import PARTIES, made_run
from .tried import tried

EFFORT = {"rounds": 2, "words": 3000}


def _document(rng: np.random.Generator, number: int) -> str:
    """Six frequent words, some of them twice, and four codes that stand nowhere else."""
    common = [f"frequent{chr(97 + int(n))}" for n in rng.integers(0, 20, 6)]
    return " ".join([*common, *(f"code{number:04d}{chr(97 + n)}" for n in range(4))])


@pytest.fixture(scope="module")
def parties() -> Mapping[str, Corpus]:
    rng = np.random.default_rng(1)
    texts = {name: [_document(rng, 100 * at + n) for n in range(34)] for at, name in enumerate(PARTIES)}
    return {name: Corpus.from_strings(own, name=name) for name, own in texts.items()}


FACTORISED = {"model": {"name": "nmf", "n_topics": 6}, "training": {"rounds": 2, "held_out": 0.1}}
AFTER_PAIRS = {
    "model": {"name": "lda-vi", "n_topics": 3},
    "training": {"rounds": 1, "held_out": 0.1, "start": "moments", "vectors": "none"},
}


def _run(place: Path, parties: Mapping[str, Corpus], profile: str, trained: Mapping[str, Any] = FACTORISED) -> RunFolder:
    words = place / "words.txt"
    words.write_text("\n".join(sorted({word for one in parties.values() for word in one.vocabulary})))
    tables = {
        "profile": profile,
        **trained,
        "vocabulary": {"source": "file", "file": str(words)},
        "origins": {"vocabulary": "made up"},
    }
    return made_run(place / profile, parties, tables)


def test_a_masked_sum_shows_which_rare_words_stand_in_one_document(parties: Mapping[str, Corpus], tmp_path: Path) -> None:
    found = tried(_run(tmp_path, parties, "masked"), "rare_rows", EFFORT)
    assert found.share(COMPANIONS) > 0.95
    assert found.share(LINKED) > 0.95
    assert found.share(FOUND) > 0.9
    assert found.share(COMPANIONS, by_chance=True) < 0.05
    assert any(example.exact for example in found.told.examples)


def test_noise_hides_them(parties: Mapping[str, Corpus], tmp_path: Path) -> None:
    found = tried(_run(tmp_path, parties, "dp-local"), "rare_rows", EFFORT)
    assert found.share(COMPANIONS) < 0.05
    assert found.hits(FOUND) == 0


def test_bare_pairs_with_which_a_training_begins_show_them_too_and_noise_hides_them(
    parties: Mapping[str, Corpus], tmp_path: Path
) -> None:
    effort = {"rounds": 1, "words": 400}
    bare = tried(_run(tmp_path, parties, "masked", AFTER_PAIRS), "rare_pairs", effort)
    assert bare.share(COMPANIONS) > 0.95
    assert bare.hits(FOUND)
    noised = tried(_run(tmp_path, parties, "dp-local", AFTER_PAIRS), "rare_pairs", effort)
    assert noised.share(COMPANIONS) < 0.1
    assert noised.hits(FOUND) == 0
