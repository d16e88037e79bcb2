"""A model behind noise predicts no worse than a guess: what adds noise says how much, and topics shrink by it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from lab.synthetic_documents import LdaNodes, lda_nodes
from securetm import federate
from securetm.corpus.corpus import Corpus
from securetm.corpus.partitions import equal

from ..quick_part import quick

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


@pytest.mark.parametrize(
    ("model", "profile"),
    quick(
        [("lda", "dp-distributed"), ("lda", "dp-local"), ("lda-vi", "dp-central"), ("sentence-lda", "dp-distributed")],
        ("lda-vi", "dp-central"),
        ("sentence-lda", "dp-distributed"),
    ),
)
def test_few_documents_behind_much_noise_predict_as_well_as_a_guess(
    model: str, profile: str, parties: Mapping[str, Corpus], words: Path, tmp_path: Path
) -> None:
    """Five hundred documents at epsilon 1 teach next to nothing of so many words in twenty topics."""
    settings = {"profile": profile, "model.name": model, "model.n_topics": 20, "training.rounds": 2, "privacy.epsilon": 1.0}
    listed = {"vocabulary.source": "file", "origins.vocabulary": "made up", "vocabulary.file": str(words)}
    result = federate(parties, tmp_path / "run", {**settings, **listed})
    assert result["rounds"] == 2
    assert np.isfinite(result["quality"]["held_out"])
    assert result["quality"]["held_out"] <= 1.01 * WORDS
