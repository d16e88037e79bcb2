"""The agreement of two models against cases worked out by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from securetm.quality import similarity as quality


def test_document_similarity_score_by_hand() -> None:
    true = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # similarities 12: 1, 13: 0, 23: 0
    inferred = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])  # 12: sqrt(1/2), 13: 0, 23: sqrt(1/2)
    expected = 2 * (1 - sqrt(0.5) + sqrt(0.5)) / 3
    assert quality.document_similarity_score(true, inferred) == pytest.approx(expected)
    assert quality.document_similarity_score(true, true) == 0.0


def test_document_similarity_score_does_not_depend_on_the_block() -> None:
    rng = np.random.default_rng(0)
    true, inferred = rng.dirichlet(np.ones(5), 50), rng.dirichlet(np.ones(5), 50)
    scores = [quality.document_similarity_score(true, inferred, block) for block in (1, 7, 50, 512)]
    np.testing.assert_allclose(scores, scores[0])


def test_document_similarity_score_ignores_the_order_of_topics() -> None:
    mixtures = np.random.default_rng(1).dirichlet(np.ones(4), 30)
    assert quality.document_similarity_score(mixtures, mixtures[:, ::-1]) == pytest.approx(0, abs=1e-10)


def test_topic_similarity_score_by_hand() -> None:
    true = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    inferred = np.array([[0.0, 1.0, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    assert quality.topic_similarity_score(true, inferred) == pytest.approx(sqrt(0.25) + sqrt(0.5))
    assert quality.topic_similarity_score(true, true) == pytest.approx(2)
