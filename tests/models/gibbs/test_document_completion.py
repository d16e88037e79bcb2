"""A document's other words are predicted no worse from a few of its words than by word frequencies, and by topics from many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from securetm.models.mixed_topics import BagDocuments, Completion

PREVALENCE = np.array([0.6, 0.3, 0.1])
BY_WORD = np.ascontiguousarray(np.random.default_rng(0).dirichlet(np.full(30, 0.3), 3).T + 1e-6)


def held(*rows: list[int]) -> BagDocuments:
    counts = np.zeros((len(rows), len(BY_WORD)), dtype=np.int64)
    for row, words in enumerate(rows):
        np.add.at(counts[row], words, 1)
    return BagDocuments.from_counts(sparse.csr_array(counts), len(BY_WORD))


@pytest.mark.parametrize("doubt", [0.0, 8.0])
def test_of_one_word_the_mean_over_the_posterior_is_exact(doubt: float) -> None:
    topics = PREVALENCE * BY_WORD[4] / (PREVALENCE * BY_WORD[4]).sum()  # how likely each topic is, given the word
    weights = np.append(2.0, (2.0 + doubt) * np.array([0.5, 1.0, 2.0]))  # one word tells nothing about how firm the prior is
    exact = np.mean([(weight * PREVALENCE + topics) / (weight + 1) for weight in weights], axis=0)
    np.testing.assert_allclose(Completion(PREVALENCE, 2.0, doubt).shares(BY_WORD, held([4]), 1)[0], exact, rtol=1e-9)


def test_a_document_is_completed_alone_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 30, rng.integers(0, 9)).tolist() for _ in range(40)]
    prior = Completion.around(BY_WORD, PREVALENCE, 1.0)
    together = prior.shares(BY_WORD, held(*rows), 3)
    np.testing.assert_array_equal(together, np.vstack([prior.shares(BY_WORD, held(row), 1) for row in rows]))
