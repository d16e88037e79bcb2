"""The quality figures against cases worked out by hand, and against a second, slower way of counting."""

from __future__ import annotations

from itertools import combinations
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import sparse

from securetm.models import quality

# Words 0..4 in four documents: 0 and 1 always together, 2 sometimes with them, 3 never with 0, 4 nowhere.
COUNTS = sparse.csr_array(np.array([[2, 1, 0, 0, 0], [1, 1, 3, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 2, 0]]))


def score(together: float, first: float, second: float) -> float:
    return log(together / (first * second)) / -log(together)


def test_document_npmi_by_hand() -> None:
    top = np.array([[0, 1], [0, 2], [0, 3], [0, 4]])
    expected = [1.0, score(1 / 4, 2 / 4, 2 / 4), -1.0, -1.0]
    np.testing.assert_allclose(quality.document_npmi(top, COUNTS), expected)
    assert expected[1] == 0.0  # 0 and 2 meet exactly as often as chance would have it


def test_npmi_is_the_mean_over_pairs() -> None:
    pairs = [1.0, 0.0, -1.0, 0.0, -1.0, score(1 / 4, 2 / 4, 2 / 4)]  # 01 02 03 12 13 23
    np.testing.assert_allclose(quality.document_npmi(np.array([[0, 1, 2, 3]]), COUNTS), [np.mean(pairs)])


def test_a_pair_that_is_everywhere_says_nothing() -> None:
    np.testing.assert_allclose(quality.document_npmi(np.array([[0, 1]]), np.ones((3, 2))), [0.0])


def test_no_documents_at_all_are_minus_one() -> None:
    np.testing.assert_allclose(quality.document_npmi(np.array([[0, 1]]), np.zeros((0, 2))), [-1.0])


def test_window_npmi_by_hand() -> None:
    # Windows of two: (0 1) (1 2) | (0 0) (0 2) | (3): five windows; 0 in three, 1 and 2 in two, 01 02 12 once each.
    tokens, ends = np.array([0, 1, 2, 0, 0, 2, 3]), np.array([3, 6, 7])
    got = quality.window_npmi(np.array([[0, 1], [0, 2], [1, 2], [0, 3]]), tokens, ends, window=2)
    np.testing.assert_allclose(got, [score(1 / 5, 3 / 5, 2 / 5), score(1 / 5, 3 / 5, 2 / 5), score(1 / 5, 2 / 5, 2 / 5), -1.0])


def test_a_word_outside_the_vocabulary_takes_its_place_in_the_window() -> None:
    tokens, ends = np.array([0, -1, 1]), np.array([3])
    assert quality.window_npmi(np.array([[0, 1]]), tokens, ends, window=2)[0] == -1.0
    assert quality.window_npmi(np.array([[0, 1]]), tokens, ends, window=3)[0] == 0.0


def test_an_empty_document_is_no_window() -> None:
    top, tokens = np.array([[0, 1]]), np.array([0, 1, 2])
    with_empty = quality.window_npmi(top, tokens, np.array([0, 2, 2, 3]), window=10)
    np.testing.assert_allclose(with_empty, quality.window_npmi(top, tokens, np.array([2, 3]), window=10))
    np.testing.assert_allclose(with_empty, [score(1 / 2, 1 / 2, 1 / 2)])


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


def test_diversity_and_top_words() -> None:
    topics = np.array([[0.1, 0.3, 0.3, 0.3], [0.4, 0.1, 0.1, 0.4]])
    top = quality.top_words(topics, 2)
    assert top.tolist() == [[1, 2], [0, 3]]
    assert quality.diversity(top) == 1.0
    assert quality.diversity(np.array([[0, 1, 2], [0, 1, 3]])) == pytest.approx(4 / 6)


def test_perplexity_of_a_uniform_model_is_its_vocabulary() -> None:
    assert quality.perplexity(np.array([3 * log(1 / 50), 5 * log(1 / 50)]), np.array([3, 5])) == pytest.approx(50)
    assert quality.perplexity(np.array([-2.0]), np.array([4])) == pytest.approx(exp(0.5))
    assert np.isnan(quality.perplexity(np.array([0.0]), np.array([0])))


def test_embedding_coherence_by_hand() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [0.0, 0.0]])
    got = quality.embedding_coherence(np.array([[0, 1, 2], [0, 2, 3]]), vectors)
    np.testing.assert_allclose(got, [(0 + 2 * sqrt(0.5)) / 3, sqrt(0.5) / 3])


# ---- agreement -----------------------------------------------------------------------------------------------------


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


def test_mover_distance_by_hand() -> None:
    vectors = np.array([[0.0], [1.0], [10.0], [12.0]])
    mine, theirs = np.array([[0, 2]]), np.array([[3, 1], [3, 2]])
    assert quality.mover_distance(mine[0], theirs[0], vectors) == pytest.approx((1 + 2) / 2)
    assert quality.mean_mover_distance(mine, theirs, vectors) == pytest.approx(1.5)
    assert quality.mean_mover_distance(mine, mine, vectors) == 0.0
