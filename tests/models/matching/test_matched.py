"""The matched form: parties train their own topics, and what each gets back is what Algorithms 3 and 4 make of all."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from securetm.contracts import Answer, Array
from securetm.errors import Mistake
from securetm.models.given_documents import as_documents
from securetm.models.lda.counting import MOST_TOPICS
from securetm.models.lda.lda import LdaDocuments
from securetm.models.lda.matched import NOWHERE, MatchedLDA, composed, integrated, merged, similarities

from ..trained_by_hand import sum_of

WORDS = 60
VOCABULARY = tuple(f"w{v}" for v in range(WORDS))


def planted(subjects: tuple[int, ...], documents: int = 90, seed: int = 0) -> Any:
    """Documents of one of these subjects each, a subject being twenty words of the sixty."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.02, (documents, WORDS))
    for i in range(documents):
        first = 20 * subjects[i % len(subjects)]
        counts[i, first : first + 20] += rng.poisson(1.0, 20)
    return as_documents(sparse.csr_array(counts), VOCABULARY)


def sent(model: MatchedLDA, state: Mapping[str, Array], documents: Any, party: str = "") -> Array:
    """What one party answers."""
    return sum_of(model.query(model.for_party(state, party)), documents).vector()


def federated(model: MatchedLDA, parties: Mapping[str, Any], rounds: int, seed: int = 0) -> Mapping[str, Array]:
    """Algorithm 5."""
    words = next(iter(parties.values())).vocabulary
    state = model.start(words, np.random.default_rng(seed))
    for _ in range(rounds):
        each = {name: {"topics": sent(model, state, documents, name)} for name, documents in parties.items()}
        state = model.update(state, Answer(None, each, tuple(parties)))
    return state


def is_distribution(topics: Array) -> bool:
    return bool(np.isfinite(topics).all() and (topics >= 0).all() and np.allclose(topics.sum(axis=1), 1))


# ---- one round -------------------------------------------------------------------------------------------------------


def test_a_party_sends_its_own_counts_and_how_much_data_it_has() -> None:
    documents = planted((0, 1))
    model = MatchedLDA(n_topics=4)
    rows = sent(model, model.start(VOCABULARY, np.random.default_rng(0)), documents)
    assert rows.shape == (4, WORDS + 1)
    np.testing.assert_array_equal(rows[:, :-1].sum(axis=0), documents.counts.sum(axis=0))
    assert (rows[:, -1] == documents.counts.sum()).all()


def test_an_update_is_algorithm_3_and_then_4() -> None:
    model = MatchedLDA(n_topics=2, xi=0.5, top=3, eta=0.01, merged="all")
    tables = {"a": np.array([[6.0, 2, 0, 0, 12], [0, 0, 0, 4, 12]]), "b": np.array([[3.0, 3, 0, 0, 6]])}
    state = model.start(("p", "q", "r", "s"), np.random.default_rng(0))
    after = model.update(state, Answer(None, {name: {"topics": table} for name, table in tables.items()}, ("a", "b")))
    local, amounts = {name: table[:, :-1] for name, table in tables.items()}, {"a": 12.0, "b": 6.0}
    expected = integrated(local, amounts, 0.5, 3)
    merged = (12 * np.array([0.75, 0.25, 0, 0]) + 6 * np.array([0.5, 0.5, 0, 0])) / 18
    np.testing.assert_allclose(expected.topics, [merged, [0, 0, 0, 1]])
    np.testing.assert_allclose(after["counts"], expected.topics * [[12], [6]])  # 6 of a's 12 tokens a topic, all of b's 6
    np.testing.assert_array_equal(after["weights"], [18, 12])
    for party in tables:
        mine = model.table(model.for_party(after, party)).counts[: len(local[party])]
        np.testing.assert_allclose(mine / mine.sum(axis=1, keepdims=True), composed(expected.topics, local[party], 0.5, 3)[0])
    np.testing.assert_allclose(model.topics(after), (after["counts"] + 0.01) / (after["counts"].sum(axis=1) + 0.04)[:, None])


def test_noise_may_make_counts_negative_and_parties_may_send_no_row() -> None:
    model = MatchedLDA(n_topics=2)
    state = model.start(("p", "q"), np.random.default_rng(0))
    tables = {"a": np.array([[6.0, -2, 12], [-1, 4, 12]]), "b": np.zeros((0, 3)), "c": np.full((1, 3), -1.0)}
    after = model.update(state, Answer(None, {name: {"topics": table} for name, table in tables.items()}, tuple("abc")))
    np.testing.assert_array_equal(model.topics(after).argmax(axis=1), [0, 1])
    assert {name for name in after if name.startswith("composed/")} == {"composed/a"}
    nothing = model.update(state, Answer(None, {"b": {"topics": tables["b"]}}, ("b",)))
    assert (int(nothing["step"][0]), nothing["counts"].shape) == (1, (2, 2))


def test_a_restart_draws_each_word_by_the_composed_model_alone() -> None:
    model = MatchedLDA(n_topics=3)
    topics = np.array([[0.6, 0.4, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 0.0]])
    documents = as_documents(np.tile([1, 1, 1], (30_000, 1)))
    state = {**model.start(documents.vocabulary, np.random.default_rng(1)), "counts": topics * 7, "weights": np.arange(3.0)}
    start = model.table(model.for_party(state, "new"))
    bags = LdaDocuments.from_counts(documents.counts, 3)
    drawn = model._restarted(start, bags, bags.names(documents.keys), 5).reshape(-1, 3)
    table = start.counts[start.counts.sum(axis=1) > 0].T
    table[table.sum(axis=1) == 0] = 1  # no topic has the last word: all are as likely
    chances = table / table.sum(axis=1, keepdims=True)
    said = np.flatnonzero(start.counts.sum(axis=1))
    for word in range(3):
        shares = np.bincount(drawn[:, word], minlength=3)[said] / len(drawn)
        np.testing.assert_allclose(shares, chances[word], atol=0.01)  # more than three standard deviations
    assert np.corrcoef(drawn[:, 0] == said[0], drawn[:, 1] == said[0])[0, 1] == pytest.approx(0, abs=0.02)


# ---- Algorithm 5 -----------------------------------------------------------------------------------------------------


def test_what_parties_share_is_one_topic_and_what_one_has_alone_is_its_own() -> None:
    parties = {"north": planted((0, 1), seed=1), "south": planted((1, 2), seed=2)}
    model = MatchedLDA(n_topics=2, xi=0.3, top=20, merged="all")
    state = federated(model, parties, 3)
    topics = model.topics(state)
    blocks = topics.reshape(len(topics), 3, 20).sum(axis=2)
    assert sorted(blocks.argmax(axis=1)) == [0, 1, 2]
    assert blocks.max(axis=1).min() > 0.9
    np.testing.assert_allclose(state["weights"][blocks[:, 1].argmax()], sum(party.counts.sum() for party in parties.values()))
    for name, own in (("north", 0), ("south", 2)):
        local = model.topics(model.for_party(state, name)).reshape(2, 3, 20).sum(axis=2)
        assert set(local.argmax(axis=1)) == {1, own}


def test_each_partys_number_of_topics_is_its_own() -> None:
    model = MatchedLDA(n_topics=2, topics_at={"big": 5})
    parties = {"big": planted((0, 1, 2), seed=1), "small": planted((1,), seed=2)}
    state = federated(model, parties, 2)
    assert [int(model.for_party(state, name)["held"][0]) for name in ("big", "small", "new")] == [5, 2, 2]
    shapes = {
        name: {n: (a.shape, a.dtype) for n, a in model.for_party(state, name).items()} for name in ("big", "small", "new", "")
    }
    fresh = model.for_party(model.start(VOCABULARY, np.random.default_rng(9)), "")
    assert all(shape == {n: (a.shape, a.dtype) for n, a in fresh.items()} for shape in shapes.values())
    assert sent(model, state, parties["big"], "big").shape == (5, WORDS + 1)
    assert model.topics(model.for_party(state, "small")).shape == (2, WORDS)


# ---- degenerate input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parties"),
    [
        ("a party without documents", {"a": planted((0,)), "b": planted((0,)).select(np.arange(0))}),
        ("nobody has any", {"a": planted((0,)).select(np.arange(0)), "b": planted((0,)).select(np.arange(0))}),
        ("no word in common", {"a": as_documents([[3, 2, 0, 0]]), "b": as_documents([[0, 0, 1, 5]])}),
        ("one word", {"a": as_documents([[3], [1]]), "b": as_documents([[7]])}),
        ("empty documents", {"a": as_documents([[0, 0]]), "b": as_documents([[0, 0], [1, 0]])}),
        ("one document each", {"a": as_documents([[1, 1]]), "b": as_documents([[1, 0]])}),
    ],
)
@pytest.mark.parametrize("xi", [0.0, 0.3])
def test_degenerate_input_ends_in_topics(name: str, parties: Mapping[str, Any], xi: float) -> None:
    model = MatchedLDA(n_topics=5, xi=xi, sweeps=3)  # more topics than some have documents
    state = federated(model, parties, 3)
    for known in (state, *(model.for_party(state, party) for party in ("a", "b", "new"))):
        assert is_distribution(model.topics(known)), name
        for documents in parties.values():
            assert np.isfinite(model.log_likelihood(known, documents, documents)).all()
            np.testing.assert_allclose(model.infer(known, documents).sum(axis=1), 1)


def test_a_lying_coordinator_gets_no_answer_from_more_topics_than_were_agreed() -> None:
    model = MatchedLDA(n_topics=2, sweeps=1)
    state = dict(model.for_party(model.start(VOCABULARY, np.random.default_rng(0)), "a"))
    for held in (-5, 0, 10**9):
        rows = sent(model, {**state, "held": np.array([held]), "counts": state["counts"] - 3.0}, planted((0,)), "a")
        assert 1 <= len(rows) <= 2
        assert np.isfinite(rows).all()


@pytest.mark.parametrize(
    "forged",
    [
        {"step": np.zeros((1, 5), np.int64)},
        {"step": np.zeros(1)},
        {"seed": np.zeros((1, 2), np.uint64)},
        {"weights": np.ones((4, 3))},
        {"weights": np.ones(3)},
        {"found": np.ones(2, np.int64)},
        {"found": np.ones(1)},
        {"counts": np.ones((4, 5))},
        {"counts": np.zeros((0, WORDS)), "weights": np.zeros(0)},
        {"counts": np.zeros((MOST_TOPICS + 1, WORDS)), "weights": np.zeros(MOST_TOPICS + 1)},
        {"composed/north": np.ones(WORDS)},
        {"more": np.ones(1)},
    ],
)
def test_a_state_of_another_form_is_none_of_this_models(forged: dict[str, Array]) -> None:
    """A coordinator may show any state for judging, and numbers are made of its arrays before anything is drawn."""
    model = MatchedLDA(n_topics=4)
    state = {**model.start(VOCABULARY, np.random.default_rng(0)), "composed/north": np.ones((7, WORDS))}
    assert model.fits(state, WORDS)
    assert not model.fits({**state, **forged}, WORDS)


# ---- saved and loaded ------------------------------------------------------------------------------------------------


# ---- by hand ---------------------------------------------------------------------------------------------------------------


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


# ---- as many topics as were asked for --------------------------------------------------------------------------------------


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
