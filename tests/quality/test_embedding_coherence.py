"""Coherence by word vectors against a case worked out by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np

from securetm.quality import coherence as quality


def test_embedding_coherence_by_hand() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [0.0, 0.0]])
    got = quality.embedding_coherence(np.array([[0, 1, 2], [0, 2, 3]]), vectors)
    np.testing.assert_allclose(got, [(0 + 2 * sqrt(0.5)) / 3, sqrt(0.5) / 3])
