"""The quality figures against cases worked out by hand, and against a second, slower way of counting."""

from __future__ import annotations

from math import exp, log

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
