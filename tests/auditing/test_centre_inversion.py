"""Texts of a pool are named by topics in which they stand, and texts of strangers are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from securetm.auditing.attacks.centre_inversion import presence
from securetm.auditing.parts.gradients import directions
from securetm.auditing.runs import Demonstrations
from securetm.stages import Unwatched

from .conftest import EMBEDDED
from .tried import settings, tried


def test_the_pool_holds_half_of_the_documents_and_as_many_that_took_no_part(embedded_documents: Path, tmp_path: Path) -> None:
    chosen = {
        "model.name": "semantic", "model.n_topics": 40, "model.embedding_size": EMBEDDED,
        "corpus.embedding": "embedding", "origins.embeddings": "made up", "origins.vocabulary": "made up",
        "vocabulary.file": str(embedded_documents.parent / "words.txt"), "tokeniser.numbers": True,
        "training.start": "plain", "training.rounds": 2, "training.held_out": 0.5,
    }  # fmt: skip
    folder = Demonstrations(tmp_path, Unwatched()).run("open", settings(embedded_documents) | chosen)
    found = tried(folder, "centre_inversion", {"rounds": 6, "documents": 10})
    pool, places = found.view.question, np.concatenate(list(found.truth.answer.trained.values()))
    inside = np.unique(places[places >= 0])
    assert len(inside) == -(-len(places) // 2)
    assert len(pool) == 2 * len(inside)
    assert 0.3 < inside.mean() / len(pool) < 0.7  # the order does not tell which


def test_texts_of_strangers_are_hardly_named() -> None:
    """Sixty documents in twenty topics, none of which is in the pool."""
    rng = np.random.default_rng(1)
    documents, pool = (directions(rng.standard_normal((many, 384))) for many in (60, 200))
    sums, places = np.zeros((20, 384)), rng.integers(0, 20, 200)
    np.add.at(sums, rng.integers(0, 20, 60), documents)
    assert (presence(pool, np.eye(20)[places], sums, 100) > 0.5).mean() < 0.02
