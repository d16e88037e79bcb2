"""Stability over seeds by hand: matching is one to one, and the order of topics plays no part."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.quality.judged_topics import JudgedTopics
from securetm.quality.similarity import matched, shared_words, stability, weight_stability

WORDS = ("a", "b", "c", "d")


def test_the_same_topics_in_another_order_are_stable() -> None:
    weights = np.array([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.2, 0.7]])
    runs = [JudgedTopics.of_weights("run", rows, WORDS) for rows in (weights, weights[::-1])]
    assert stability(runs, 2) == 1
    assert weight_stability(runs) == pytest.approx(1)


def test_two_topics_cannot_be_matched_with_the_same_one() -> None:
    one = JudgedTopics("one", (("a", "b"), ("a", "b")))
    other = JudgedTopics("other", (("a", "b"), ("c", "d")))
    assert matched(shared_words(one, other)).tolist() == [1, 0]
    assert stability([one, other]) == 0.5


def test_a_word_that_one_model_does_not_have_has_no_weight_in_it() -> None:
    one = JudgedTopics.of_weights("one", np.array([[0.5, 0.5]]), ("a", "b"))
    other = JudgedTopics.of_weights("other", np.array([[0.5, 0.5]]), ("b", "c"))
    assert weight_stability([one, other]) == pytest.approx(0.5)
