"""The matched form: parties train their own topics, and what each gets back is what Algorithms 3 and 4 make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.contracts import Answer, Array
from securetm.models.given_documents import as_documents
from securetm.models.lda.counting import MOST_TOPICS
from securetm.models.lda.lda import LdaDocuments
from securetm.models.lda.matched import MatchedLDA, amount_of, composed, integrated
from tests.models.trained_by_hand import sum_of

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
    np.testing.assert_allclose(state["weights"][blocks[:, 1].argmax()], sum(map(amount_of, parties.values())))
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
