"""Priors learned from counts come near the truth, add up over parties exactly, and stay within bounds whatever comes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma

from securetm.contracts import Answer
from securetm.corpus.corpus import Corpus
from securetm.corpus.held_documents import HeldDocuments
from securetm.federation.questions import PerPerson
from securetm.models.given_documents import as_documents
from securetm.models.lda import lda as priors
from securetm.models.lda.lda import LDA
from tests.models.trained_by_hand import sum_of

TRUTH = np.array([0.8, 0.4, 0.2, 0.1, 0.1])


def documents_of(alpha, eta, documents=1500, words=120, seed=0):
    """Documents of forty to eighty words by LDA's own process, with an alpha for each topic."""
    topics = np.random.default_rng(7).dirichlet(np.full(words, eta), len(alpha))
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(alpha, documents)
    counts = np.array([rng.multinomial(rng.integers(40, 81), share @ topics) for share in shares])
    return as_documents(sparse.csr_array(counts))


def answer_of(model, state, documents, memory):
    clipped_sum = sum_of(model.query(state), documents, memory, persons=documents.persons)
    return {name: block.copy() for name, block in clipped_sum.blocks().items()}


# ---- the fixed points --------------------------------------------------------------------------------------------------


def test_tables_are_on_average_what_the_digamma_function_says():
    topics, ends = np.tile(np.array([0, 0, 2, 0, 2], dtype=np.uint16), 20_000), np.arange(0, 100_001, 5)
    alpha = np.array([0.3, 0.1, 0.7])
    found = priors.tables_of_documents(topics, ends, np.arange(20_000, dtype=np.uint64), alpha, 5, 3)
    expected = alpha * (digamma(np.array([3, 0, 2]) + alpha) - digamma(alpha))
    whole = alpha.sum() * (digamma(5 + alpha.sum()) - digamma(alpha.sum()))
    np.testing.assert_allclose(found.sum(axis=0) / 20_000, [*expected, whole], rtol=0.02)
    assert (found.toarray() <= np.array([3, 0, 2, 5])).all()
    assert found.has_canonical_format or len(np.unique(found[[0]].indices)) == found[[0]].nnz


def test_alpha_of_true_topics_is_found():
    rng = np.random.default_rng(1)
    counts = np.array([rng.multinomial(100, share) for share in rng.dirichlet(TRUTH, 3_000)])
    topics = np.concatenate([np.repeat(np.arange(5), row) for row in counts]).astype(np.uint16)
    ends, names, alpha = np.arange(0, 300_001, 100), np.arange(3_000, dtype=np.uint64), np.full(5, 0.1)
    for step in range(60):
        tables = priors.tables_of_documents(topics, ends, names, alpha, 1, step).sum(axis=0)
        alpha = priors.learned_alpha(np.asarray(tables, dtype=float), alpha, 0.1, symmetric=False)
    np.testing.assert_allclose(alpha, TRUTH, rtol=0.1)


@pytest.mark.parametrize("eta", [0.02, 2.0])
def test_eta_of_true_topics_is_found(eta):
    rng = np.random.default_rng(2)
    counts = np.array([rng.multinomial(20_000, share) for share in rng.dirichlet(np.full(500, eta), 40)]).astype(float)
    found = 0.1
    for _ in range(60):
        found = priors.learned_eta(counts, found, 0.1)
    assert found == pytest.approx(eta, rel=0.1)


# ---- in a model --------------------------------------------------------------------------------------------------------


def test_a_federation_learns_the_same_priors_as_one_machine():
    documents = documents_of(TRUTH, 0.1, documents=120)
    model = LDA(n_topics=5, priors="learned")
    parts = [documents, documents.select(np.arange(50)), documents.select(np.arange(50, 120))]
    memories = [{}, {}, {}]
    state = model.start(documents.vocabulary, np.random.default_rng(0))
    for _ in range(13):
        whole, one, other = (answer_of(model, state, part, memory) for part, memory in zip(parts, memories, strict=True))
        for name in ("counts", priors.TABLES):
            np.testing.assert_array_equal(whole[name], one[name] + other[name])
        state = model.update(state, Answer(whole))
    assert (state["alpha"] != 0.1).all()
    assert state["eta"][0] != 0.01


def test_fixed_priors_ask_for_nothing_more_and_draw_alike():
    documents = documents_of(TRUTH, 0.1, documents=50)
    fixed, learning = LDA(n_topics=5), LDA(n_topics=5, priors="learned")
    state = fixed.start(documents.vocabulary, np.random.default_rng(0))
    found, more = answer_of(fixed, state, documents, {}), answer_of(learning, state, documents, {})
    assert found.keys() == {"counts"}
    np.testing.assert_array_equal(found["counts"], more["counts"])
    before = learning.update(state, Answer(more))
    np.testing.assert_array_equal(before["alpha"], state["alpha"])  # nothing is learned of the first rounds


# ---- little, and nonsense ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["symmetric", "learned"])
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("counts", [[[3]], [[0, 0], [0, 0]], np.zeros((0, 5), dtype=int), [[500, 0], [0, 500]]])
def test_little_input_ends_in_priors_within_bounds(counts, k, name):
    model = LDA(n_topics=k, priors=name).fit(np.array(counts), epochs=15)
    state = model.learned.state
    for prior in (state["alpha"], state["eta"]):
        assert np.isfinite(prior).all()
        assert (prior >= priors.LEAST_PRIOR).all()
        assert (prior <= priors.MOST_PRIOR).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    if not np.array(counts).any():  # nothing is learned of nothing
        np.testing.assert_allclose(state["alpha"], 0.1)
        np.testing.assert_allclose(state["eta"], 0.01)


@pytest.mark.parametrize("value", [-1e9, 0.0, 1e18, 0.5])
def test_a_noisy_or_forged_total_leaves_priors_within_bounds(value):
    model = LDA(n_topics=3, priors="learned")
    state = {**model.start(("a", "b"), np.random.default_rng(0)), "step": np.array([20])}
    after = model.update(state, Answer({"counts": np.full((3, 2), value), priors.TABLES: np.full(4, value)}))
    for prior in (after["alpha"], after["eta"]):
        assert ((prior >= priors.LEAST_PRIOR) & (prior <= priors.MOST_PRIOR)).all()


def test_rows_of_persons_are_poured_whole():
    documents = documents_of(TRUTH, 0.1, documents=40)
    owned = Corpus(HeldDocuments(documents.counts, documents.vocabulary, documents.keys, persons=np.arange(40) % 7))
    model = LDA(n_topics=5, priors="learned")
    state = model.start(documents.vocabulary, np.random.default_rng(0))
    clipped_sum = sum_of(PerPerson(model.query(state)), owned, persons=owned.persons)
    expected = answer_of(model, state, documents, {})
    np.testing.assert_array_equal(clipped_sum.blocks()[priors.TABLES], expected[priors.TABLES])
