"""Coherence by sliding windows and by word vectors, against cases worked out by hand, and against listing the windows."""

from __future__ import annotations

from itertools import combinations
from math import log, sqrt

import numpy as np
import pytest

from securetm.quality import measures as quality


def score(together: float, first: float, second: float) -> float:
    return log(together / (first * second)) / -log(together)


def test_window_npmi_by_hand() -> None:
    # Windows of two: (0 1) (1 2) | (0 0) (0 2) | (3): five windows; 0 in three, 1 and 2 in two, 01 02 12 once each.
    tokens, ends = np.array([0, 1, 2, 0, 0, 2, 3]), np.array([3, 6, 7])
    got = quality.window_npmi(np.array([[0, 1], [0, 2], [1, 2], [0, 3]]), tokens, ends, window=2)
    np.testing.assert_allclose(got, [score(1 / 5, 3 / 5, 2 / 5), score(1 / 5, 3 / 5, 2 / 5), score(1 / 5, 2 / 5, 2 / 5), -1.0])


def test_a_word_outside_the_vocabulary_takes_its_place_in_the_window() -> None:
    tokens, ends = np.array([0, -1, 1]), np.array([3])
    assert quality.window_npmi(np.array([[0, 1]]), tokens, ends, window=2)[0] == -1.0
    assert quality.window_npmi(np.array([[0, 1]]), tokens, ends, window=3)[0] == 0.0


@pytest.mark.parametrize("window", [1, 2, 5, 10, 40])
def test_window_npmi_counts_as_listing_the_windows_does(window: int) -> None:
    rng = np.random.default_rng(window)
    ends = np.cumsum(rng.integers(0, 30, 40))
    tokens = rng.integers(-1, 12, ends[-1]).astype(np.int32)
    top = np.array([[0, 1, 2], [3, 4, 0], [7, 6, 11]])
    listed = [set(w) for document in np.split(tokens, ends[:-1]) for w in _windows(list(document), window)]
    expected = [np.mean([_npmi(listed, a, b) for a, b in combinations(words, 2)]) for words in top.tolist()]
    np.testing.assert_allclose(quality.window_npmi(top, tokens, ends, window=window), expected)


def _windows(document: list[int], window: int) -> list[list[int]]:
    if not document:
        return []
    return [document[i : i + window] for i in range(max(1, len(document) - window + 1))]


def _npmi(windows: list[set[int]], a: int, b: int) -> float:
    n = len(windows)
    both = sum(a in w and b in w for w in windows) / n
    return score(both, sum(a in w for w in windows) / n, sum(b in w for w in windows) / n) if both else -1.0


def test_c_v_by_hand() -> None:
    # Three documents are one window each: 0 and 1 meet in one of three, each stands in two; 2 stands alone in none.
    tokens, ends = np.array([0, 1, 0, 1]), np.array([2, 3, 4])
    together = score(1 / 3, 2 / 3, 2 / 3)  # of 0 and 1; each with itself has 1
    words = np.array([[1.0, together], [together, 1.0]])
    whole = words.sum(axis=0)
    cosines = [float(word @ whole) / sqrt(float(word @ word) * float(whole @ whole)) for word in words]
    np.testing.assert_allclose(quality.c_v(np.array([[0, 1]]), tokens, ends), np.mean(cosines), rtol=1e-9)
    np.testing.assert_allclose(quality.c_v(np.array([[0, 1, 2]]), tokens, ends), (cosines[0] + cosines[1] + 0) / 3, rtol=1e-9)


def test_c_v_of_a_word_that_is_in_every_window_is_finite() -> None:
    assert np.isfinite(quality.c_v(np.array([[0, 1]]), np.array([0, 1]), np.array([1, 2]))).all()
    assert np.isfinite(quality.c_v(np.array([[0, 1]]), np.array([0, 0]), np.array([1, 2]))).all()


def test_embedding_coherence_by_hand() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [0.0, 0.0]])
    got = quality.embedding_coherence(np.array([[0, 1, 2], [0, 2, 3]]), vectors)
    np.testing.assert_allclose(got, [(0 + 2 * sqrt(0.5)) / 3, sqrt(0.5) / 3])
