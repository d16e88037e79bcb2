"""The agreement of models against cases worked out by hand: of mixtures, of topics, of moved words, and over seeds."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from securetm.quality import measures as quality
from securetm.quality.judged_topics import JudgedTopics
from securetm.quality.measures import (
    WeightedWords,
    closest_distances,
    matched,
    mover_distance,
    shared_words,
    stability,
    weight_stability,
)


def test_document_similarity_score_by_hand() -> None:
    true = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # similarities 12: 1, 13: 0, 23: 0
    inferred = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])  # 12: sqrt(1/2), 13: 0, 23: sqrt(1/2)
    expected = 2 * (1 - sqrt(0.5) + sqrt(0.5)) / 3
    assert quality.document_similarity_score(true, inferred) == pytest.approx(expected)
    assert quality.document_similarity_score(true, true) == 0.0


def test_topic_similarity_score_by_hand() -> None:
    true = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    inferred = np.array([[0.0, 1.0, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    assert quality.topic_similarity_score(true, inferred) == pytest.approx(sqrt(0.25) + sqrt(0.5))
    assert quality.topic_similarity_score(true, true) == pytest.approx(2)


def on_circle(*angles: float) -> np.ndarray:
    return np.array([[np.cos(np.radians(angle)), np.sin(np.radians(angle))] for angle in angles])


def test_weights_are_moved_whole_or_in_parts() -> None:
    one = WeightedWords(on_circle(0, 90), np.array([0.5, 0.5]))
    assert mover_distance(one, one) == pytest.approx(0)
    # A quarter of the weight moves from 0 to 90 degrees, over the distance sqrt 2; all else stays.
    assert mover_distance(one, WeightedWords(on_circle(0, 90), np.array([0.25, 0.75]))) == pytest.approx(sqrt(2) / 4)
    # Three words against one: everything moves to it.
    assert mover_distance(one, WeightedWords(on_circle(180), np.array([1.0]))) == pytest.approx((2 + sqrt(2)) / 2)


def test_the_closest_is_found_as_by_trying_all() -> None:
    rng = np.random.default_rng(0)

    def topics(several: int) -> list[WeightedWords]:
        made = []
        for _ in range(several):
            vectors = rng.normal(size=(6, 4))
            made.append(WeightedWords(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), rng.dirichlet(np.ones(6))))
        return made

    mine, others = topics(7), topics(9)
    every = [min(mover_distance(one, other) for other in others) for one in mine]
    np.testing.assert_allclose(closest_distances(mine, others), every)


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
