"""Variational LDA: what a document gives beside its definition, how batches fade, what noise leaves, and degenerate input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma as scipy_digamma
from scipy.special import gammaln

from securetm.contracts import Answer, Array, State
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.models.lda.lda_vi import DocumentBounds, VariationalLDA, _digamma, lengths_of
from securetm.models.mixed_topics import Bags
from securetm.models.noisy_counts import NoisedCounts
from securetm.models.quality import top_words
from tests.models import trained_by_hand
from tests.models.trained_by_hand import WORDS, sum_of


def planted(documents: int = 240) -> Any:
    return trained_by_hand.planted(documents)[0]


def total_of(model: VariationalLDA, state: State, documents: Any, radius: float = np.inf) -> Array:
    return sum_of(model.query(state), documents, radius=radius).blocks()["counts"]


def after(model: VariationalLDA, rounds: int, documents: Any, seed: int = 0) -> State:
    state = model.start(documents.vocabulary, np.random.default_rng(seed))
    for _ in range(rounds):
        state = model.update(state, Answer({"counts": total_of(model, state, documents)}))
    return state


# ---- what a document gives -------------------------------------------------------------------------------------------


def test_digamma_is_that_of_scipy() -> None:
    places = np.concatenate([np.geomspace(1e-9, 1e9, 200), np.linspace(0.1, 12, 200)])
    np.testing.assert_allclose([_digamma(x) for x in places], scipy_digamma(places), rtol=1e-11, atol=1e-12)


def bound_of(counts: Array, gamma: Array, alpha: float, log_chances: Array) -> float:
    """The evidence lower bound of one document, as it is written down, for fixed shares of topics."""
    logs = scipy_digamma(gamma) - scipy_digamma(gamma.sum())
    said = counts @ np.log(np.exp(logs[:, None] + log_chances).sum(axis=0))
    k = len(gamma)
    return float(
        said
        + gammaln(k * alpha) - k * gammaln(alpha) - gammaln(gamma.sum()) + gammaln(gamma).sum()
        + ((alpha - gamma) * logs).sum()
    )  # fmt: skip


def settled(counts: Array, alpha: float, log_chances: Array) -> tuple[Array, Array]:
    """The E-step of one document, slowly: its Dirichlet parameters, and each word's share of topics."""
    gamma = np.full(len(log_chances), alpha + counts.sum() / len(log_chances))
    for _ in range(5000):
        shares = np.exp(scipy_digamma(gamma)[:, None] + log_chances)
        shares /= shares.sum(axis=0)
        gamma = alpha + shares @ counts
    return gamma, shares


@pytest.mark.parametrize("which", range(2))
def test_a_document_gives_the_counts_that_it_expects(which: int) -> None:
    documents = planted()
    model = VariationalLDA(n_topics=3, passes=5000)
    state = after(model, 2, documents)
    one = documents.select(np.array([which]))
    chances = model.smoothed(state)
    log_chances = scipy_digamma(chances) - scipy_digamma(chances.sum(axis=1, keepdims=True))
    counts = one.counts.toarray().ravel()
    gamma, shares = settled(counts, model.alpha, log_chances)
    np.testing.assert_allclose(total_of(model, state, one), shares * counts, atol=1e-2)  # it stops a little early
    bounds = DocumentBounds.found(model, state, model.counted(one, WORDS))
    assert bounds.values[0] == pytest.approx(-bound_of(counts, gamma, model.alpha, log_chances), abs=1e-3)


# ---- what is learned -------------------------------------------------------------------------------------------------


def test_it_finds_what_was_planted() -> None:
    model = VariationalLDA(n_topics=3).fit(planted(), epochs=30, seed=1)
    found = {frozenset(row // 20) for row in top_words(model.components_, 15)}
    assert found == {frozenset([0]), frozenset([1]), frozenset([2])}
    shares = model.transform(planted())
    assert all(len(np.unique(shares[t::3].argmax(axis=1))) == 1 for t in range(3))


def test_batches_fade_at_the_public_rate() -> None:
    """No round knows how many documents there are, and yet counts come to as many words as the whole corpus has."""
    documents = planted()
    fitted = VariationalLDA(n_topics=3, batch_size=24, forgetting=0.1).fit(documents, epochs=20)
    assert fitted.learned.state["counts"].sum() == pytest.approx(documents.counts.sum(), rel=0.05)
    assert fitted.learned.state["step"][0] == 200
    found = {frozenset(row // 20) for row in top_words(fitted.components_, 15)}
    assert len(found) == 3


def test_a_first_sum_takes_the_place_of_the_random_start() -> None:
    model = VariationalLDA(n_topics=2, forgetting=0.5)
    state = model.start(("a", "b"), np.random.default_rng(0))
    counts = np.array([[4.0, 2.0], [0.0, 8.0]])
    first = model.update(state, Answer({"counts": counts}))
    np.testing.assert_array_equal(first["counts"], counts)
    np.testing.assert_array_equal(model.update(first, Answer({"counts": counts}))["counts"], 1.5 * counts)


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_the_length_of_a_very_long_document_is_exact() -> None:
    """A clip leaves little room, so rounding may not add up over the words of a document."""
    words, topics = 200_000, 20
    bags = (np.array([0, words]), np.arange(words), np.ones(words, dtype=np.int64))
    chances, leanings = np.full((words, topics), 0.1), np.full((1, topics), 0.3)
    found = lengths_of(np.array([0]), np.array([0, 1]), Bags(*bags), chances, leanings, np.ones(words), 0.0)[0]
    each = 1.0 / (0.3 * 0.1 * topics) * 0.3 * 0.1  # every word's count is shared alike by all topics
    assert found == pytest.approx(np.sqrt(words * topics) * each, rel=1e-14)


@pytest.mark.parametrize("totals", [0.0, 0.3, 2.0])
def test_the_length_of_a_row_is_that_of_the_row_that_is_summed(totals: float) -> None:
    """The mean of each word's counts is stretched in the first round: the clip bounds the stretched row."""
    rng = np.random.default_rng(5)
    model = VariationalLDA(n_topics=4, totals=totals)
    vocabulary = [f"word{n}" for n in range(30)]
    state = model.start(vocabulary, rng)
    documents = Corpus(
        HeldDocuments(sparse.csr_array(rng.poisson(0.7, (6, 30))), tuple(vocabulary), np.arange(6, dtype=np.uint64))
    )
    for owners in (np.arange(6), np.array([0, 0, 1, 1, 1, 2])):
        bounds = DocumentBounds.found(model, state, model.counted(documents, 30))
        rows = [bounds.gradient((owners == owner).astype(float)) for owner in np.unique(owners)]
        np.testing.assert_allclose(bounds.norms(owners), np.linalg.norm(rows, axis=1), rtol=1e-12)


def test_totals_of_words_are_as_sure_as_their_weight_says() -> None:
    """The same noise moves totals less the more they weigh; without noise the weight changes nothing."""
    rng, words, topics = np.random.default_rng(6), 500, 20
    truth = rng.gamma(1.0, 40.0, (topics, words))
    errors = {}
    for totals in (0.0, 1.0):
        model = VariationalLDA(n_topics=topics, totals=totals)
        state = model.start([f"word{n}" for n in range(words)], np.random.default_rng(0))
        stretch = model.stretch(state)
        sent = truth + (stretch - 1.0) * truth.mean(axis=0)
        np.testing.assert_allclose(model.update(state, Answer({"counts": sent}))["counts"], truth)
        noised = Answer({"counts": sent + np.random.default_rng(7).normal(0, 20.0, truth.shape)}, deviation=20.0)
        after = NoisedCounts.kept_in(model.update(state, noised))
        assert after is not None
        errors[totals] = float(np.std(after.words / after.rounds - truth.sum(axis=0)))
        assert errors[totals] == pytest.approx(float(np.sqrt(after.words_variance)) / after.rounds, rel=0.2)
    assert errors[1.0] < errors[0.0] / 4
