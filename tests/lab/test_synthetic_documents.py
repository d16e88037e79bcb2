"""The generative process is LDA's: its documents follow the beta and theta that are kept beside them."""

from __future__ import annotations

import numpy as np
import pytest

from lab.synthetic_documents import LdaNodes, SyntheticNodes, lda_nodes
from tests.corpus.generated import check

SMALL = LdaNodes(nodes=3, topics=8, words=200, eta=0.05, documents=400, validation_documents=20)


@pytest.fixture(scope="module")
def nodes() -> SyntheticNodes:
    return lda_nodes(SMALL, seed=5)


def test_shapes_lengths_and_names(nodes: SyntheticNodes) -> None:
    assert list(nodes.train) == ["node-1", "node-2", "node-3"]
    assert nodes.beta.shape == (8, 200)
    assert np.allclose(nodes.beta.sum(axis=1), 1)
    for name, corpus in nodes.train.items():
        check(corpus)
        assert (len(corpus), len(nodes.validation[name])) == (400, 20)
        assert "term56" in corpus.vocabulary
        assert corpus.vocabulary == tuple(sorted(corpus.vocabulary))
        lengths = corpus.lengths()
        assert (lengths.min(), lengths.max()) == (150, 250)
        assert abs(lengths.mean() - 200) < 8
        assert nodes.theta[name].shape == (400, 8)
        assert np.allclose(nodes.theta[name].sum(axis=1), 1)
    keys = [k for part in (nodes.train, nodes.validation) for c in part.values() for k in c.keys]
    assert len(set(keys)) == len(keys)


def test_theta_is_a_symmetric_dirichlet_of_the_papers_alpha(nodes: SyntheticNodes) -> None:
    theta = nodes.theta["node-1"]
    alpha = 50 / 8
    assert np.abs(theta.mean(axis=0) - 0.125).max() < 0.03
    assert np.abs(theta.var(axis=0) / (0.125 * 0.875 / (8 * alpha + 1)) - 1).max() < 0.35
    assert LdaNodes().concentration == 1.0


def test_words_follow_theta_times_beta(nodes: SyntheticNodes) -> None:
    """Pearson's statistic over all words of a node, whose expected counts are known document by document."""
    for name, corpus in nodes.train.items():
        expected = (nodes.theta[name] * corpus.lengths()[:, None]).sum(axis=0) @ nodes.beta
        found = np.asarray(corpus.counts.sum(axis=0)).ravel()
        common = expected > 20
        statistic = ((found - expected)[common] ** 2 / expected[common]).sum()
        assert abs(statistic - common.sum()) < 5 * np.sqrt(2 * common.sum())
        assert found[expected < 1e-12].sum() == 0


def test_each_document_follows_its_own_theta(nodes: SyntheticNodes) -> None:
    corpus, theta = nodes.train["node-2"], nodes.theta["node-2"]
    right = corpus.counts.multiply(np.log(theta @ nodes.beta + 1e-12)).sum()
    wrong = corpus.counts.multiply(np.log(np.roll(theta, 1, axis=0) @ nodes.beta + 1e-12)).sum()
    assert right > wrong


def test_the_order_of_words_says_nothing(nodes: SyntheticNodes) -> None:
    corpus = nodes.train["node-1"]
    assert corpus.tokens is not None
    assert corpus.token_ends is not None
    firsts = corpus.tokens[np.concatenate([[0], corpus.token_ends[:-1]])]
    expected = nodes.theta["node-1"].mean(axis=0) @ nodes.beta
    top = np.argsort(-expected)[:20]
    assert abs(np.isin(firsts, top).mean() - expected[top].sum()) < 0.13  # 5 standard deviations


def test_seeds(nodes: SyntheticNodes) -> None:
    again = lda_nodes(SMALL, seed=5)
    assert again.train["node-3"].tokens is not None
    assert again.train["node-3"].tokens.tolist() == nodes.train["node-3"].tokens.tolist()  # type: ignore[union-attr]
    assert not np.allclose(lda_nodes(SMALL, seed=6).beta, nodes.beta)
