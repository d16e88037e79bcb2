"""The earth mover's distance against cases worked out by hand, and the order in which topics are tried against trying all."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from securetm.quality.similarity import WeightedWords, closest_distances, mover_distance


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
