"""iFTM's matching by hand: similarities, merged topics and composed models whose numbers fit on paper. No party takes part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securetm.contracts import Array
from securetm.errors import Mistake
from securetm.models.lda.matched import NOWHERE, composed, integrated, similarities


def weighted_jaccard(one: Array, other: Array, words: int) -> float:
    """Of one pair."""
    return float(similarities(one[None, :], other[None, :], words)[0, 0])


def as_printed(one: Array, other: Array, words: int) -> tuple[float, float]:
    """Equation 29 word by word, in both of its forms."""
    tops = [
        dict(sorted(((int(w), float(t[w])) for w in np.flatnonzero(t)), key=lambda e: (-e[1], e[0]))[:words])
        for t in (one, other)
    ]
    common = tops[0].keys() & tops[1].keys()
    least = sum(min(tops[0][w], tops[1][w]) for w in common)
    most = sum(max(tops[0][w], tops[1][w]) for w in common)
    rest = sum(p for top in tops for w, p in top.items() if w not in common)
    whole = sum(p for top in tops for p in top.values())
    return (least / (most + rest), least / (whole - least)) if whole else (0.0, 0.0)


# ---- similarity ------------------------------------------------------------------------------------------------------


def tables(rows: int) -> st.SearchStrategy[Array]:
    numbers = st.lists(st.sampled_from([0.0, 0.1, 0.1, 0.25, 1.0, 3.0, 7.7]), min_size=6, max_size=6)
    return st.lists(numbers, min_size=1, max_size=rows).map(np.array)


@given(tables(4), tables(4), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_every_pair_is_as_printed_in_both_forms(ones: Array, others: Array, words: int) -> None:
    found = similarities(ones, others, words)
    for i, one in enumerate(ones):
        for j, other in enumerate(others):
            first, second = as_printed(one, other, words)
            assert found[i, j] == pytest.approx(first) == pytest.approx(second)
    np.testing.assert_array_equal(found, similarities(others, ones, words).T)


def test_a_topic_is_itself_to_the_last_bit() -> None:
    topics = np.random.default_rng(0).dirichlet(np.full(200, 0.1), size=20)
    assert (np.diagonal(similarities(topics, topics, 37)) == 1.0).all()
    assert similarities(topics, topics, 37).max() == 1.0


# ---- Algorithm 3 -----------------------------------------------------------------------------------------------------


def test_alike_topics_merge_in_proportion_to_the_data() -> None:
    parties = {"big": np.array([[6.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0]]), "small": np.array([[3.0, 3.0, 0.0, 0.0]])}
    # (3/4, 1/4) and (1/2, 1/2): least 3/4, most 5/4, so 0.6. The third has no word in common with them.
    found = integrated(parties, {"big": 3, "small": 1}, xi=0.5, words=4)
    np.testing.assert_allclose(found.topics, [[11 / 16, 5 / 16, 0, 0], [0, 0, 0, 1]])  # (3 x 3/4 + 1 x 1/2) / 4, ...
    np.testing.assert_array_equal(found.weights, [4, 3])
    assert {name: list(places) for name, places in found.went.items()} == {"big": [0, 1], "small": [0]}


def test_two_that_differ_are_one_if_a_third_is_like_both() -> None:
    chain = {"a": np.array([[2.0, 0.0, 0.0]]), "b": np.array([[1.0, 1.0, 0.0]]), "c": np.array([[0.0, 2.0, 0.0]])}
    assert weighted_jaccard(chain["a"][0], chain["c"][0], 3) == 0.0
    found = integrated(chain, {"a": 1, "b": 2, "c": 1}, xi=0.3, words=3)
    np.testing.assert_allclose(found.topics, [[0.5, 0.5, 0.0]])  # (1 x (1, 0) + 2 x (1/2, 1/2) + 1 x (0, 1)) / 4
    assert found.weights.tolist() == [4]


def test_who_comes_first_decides_nothing() -> None:
    rng = np.random.default_rng(3)
    parties = {f"p{i}": rng.dirichlet(np.full(30, 0.1), size=size) for i, size in enumerate((4, 7, 2))}
    amounts = {"p0": 10, "p1": 3, "p2": 400}
    one = integrated(parties, amounts, 0.2, 10)
    same = integrated(dict(reversed(parties.items())), amounts, 0.2, 10)
    np.testing.assert_array_equal(one.topics, same.topics)
    renamed = integrated({n.translate({48: 57}): t for n, t in parties.items()}, {"p9": 10, "p1": 3, "p2": 400}, 0.2, 10)
    order, other = np.lexsort(one.topics.T.round(9)), np.lexsort(renamed.topics.T.round(9))
    np.testing.assert_allclose(one.topics[order], renamed.topics[other], atol=1e-12)
    np.testing.assert_allclose(one.weights[order], renamed.weights[other])
    assert 1 < len(one.topics) < 13


def test_empty_topics_go_nowhere_and_so_do_those_of_a_party_without_data() -> None:
    parties = {"a": np.array([[0.0, 0.0], [1.0, 1.0]]), "b": np.array([[2.0, 0.0]])}
    found = integrated(parties, {"a": 1, "b": 0}, xi=0.0, words=2)
    np.testing.assert_allclose(found.topics, [[0.5, 0.5]])
    assert (found.went["a"].tolist(), found.went["b"].tolist()) == ([NOWHERE, 0], [NOWHERE])


# ---- Algorithm 4 -----------------------------------------------------------------------------------------------------


def test_what_is_like_enough_is_replaced_and_the_rest_stays() -> None:
    ours = np.array([[3.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    topics, taken = composed(
        np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]), ours, xi=0.5, words=4
    )  # 0.6, and 0.5 / 1.5
    np.testing.assert_allclose(topics, [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    assert taken.tolist() == [0, NOWHERE]


def test_no_topic_is_given_twice_and_the_most_alike_comes_first() -> None:
    ours = np.array([[0.8, 0.2, 0.0], [0.9, 0.1, 0.0], [0.7, 0.3, 0.0]])
    topics, taken = composed(np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0]]), ours, xi=0.5, words=3)
    assert taken.tolist() == [
        NOWHERE,
        0,
        1,
    ]  # 0.9 / 1.1 = 0.82 was second, 0.8 / 1.2 = 0.67 is left: third, of (0.7, 0.3)
    np.testing.assert_allclose(topics, [[0.8, 0.2, 0], [0.9, 0.1, 0], [0.5, 0.5, 0]])


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e-9, 1e300])
def test_what_is_no_weight_is_refused_by_name(bad: float) -> None:
    with pytest.raises(Mistake, match="of b"):
        integrated({"a": np.array([[1.0, 0.0]]), "b": np.array([[1.0, bad]])}, {"a": 1, "b": 1}, 0.5, 2)
    with pytest.raises(Mistake, match="of a"):
        integrated({"a": np.ones((1, 2))}, {"a": float("nan")}, 0.5, 2)
