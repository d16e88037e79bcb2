"""The matched form gives as many topics as were asked for: what Algorithm 3 finds is merged down, or taken apart again."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from securetm.contracts import Answer, Array
from securetm.models.lda.matched import MatchedLDA, merged

from .test_matched import planted, sent

PARTIES: Mapping[str, Any] = {"north": planted((0, 1), seed=1), "south": planted((1, 2), seed=2)}


def rounds(model: MatchedLDA, number: int = 2) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
    """The state after some rounds, and what every party last sent."""
    state, each = model.start(PARTIES["north"].vocabulary, np.random.default_rng(0)), {}
    for _ in range(number):
        each = {name: sent(model, state, documents, name) for name, documents in PARTIES.items()}
        state = model.update(state, Answer(None, {name: {"topics": rows} for name, rows in each.items()}, tuple(PARTIES)))
    return state, each


@pytest.mark.parametrize(("asked", "xi"), [(1, 1.0), (2, 0.4), (3, 0.05), (5, 0.0), (5, 1.0)])
def test_a_model_has_the_number_of_topics_that_was_asked_for(asked: int, xi: float) -> None:
    """At similarity 1 nothing matches and all parties' topics stand side by side; at 0 all of them are one."""
    model = MatchedLDA(n_topics=asked, xi=xi, sweeps=3)
    state, _ = rounds(model)
    assert model.topics(state).shape == (asked, 60)
    assert model.fits(state, 60)
    found = int(state["found"][0])
    assert found == {0.0: 1, 1.0: 2 * asked}.get(xi, found)
    np.testing.assert_allclose(model.infer(state, PARTIES["north"]).sum(axis=1), 1)


def test_merging_changes_what_everybody_is_shown_and_nothing_that_the_parties_learn() -> None:
    settings: dict[str, Any] = {"n_topics": 4, "xi": 0.8, "sweeps": 3}
    asked, everything = MatchedLDA(**settings), MatchedLDA(**settings, merged="all")
    (one, sent_one), (two, sent_two) = rounds(asked, 3), rounds(everything, 3)
    assert all((sent_one[name] == sent_two[name]).all() for name in PARTIES)
    assert len(everything.topics(two)) == int(two["found"][0]) == int(one["found"][0]) > 4
    np.testing.assert_allclose(one["counts"].sum(axis=0), two["counts"].sum(axis=0))  # no count is lost or made up
    np.testing.assert_allclose(one["weights"].sum(), two["weights"].sum())
    for name in one:
        if name.startswith("composed/"):
            np.testing.assert_array_equal(one[name], two[name])


def test_one_step_merges_the_two_that_lose_least() -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        counts = rng.gamma(0.3, 1.0, (6, 8)) * rng.gamma(1.0, 50.0, (6, 1))
        found = merged(counts, 5)
        assert sorted(set(found.tolist())) == [0, 1, 2, 3, 4]
        pairs = list(itertools.combinations(range(6), 2))
        costs = [cost(counts[a], counts[b]) for a, b in pairs]
        a, b = pairs[int(np.argmin(costs))]
        assert found[a] == found[b]


def cost(one: Array, other: Array) -> float:
    masses = one.sum() * other.sum() / (one.sum() + other.sum())
    return float(masses * (1 - np.sqrt(one / one.sum() * other / other.sum()).sum()))
