"""The generative process is LDA's: its documents follow the beta and theta that are kept beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lab.synthetic_documents import LdaNodes, SyntheticNodes, SyntheticStream, lda_nodes
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


def test_words_follow_theta_times_beta(nodes: SyntheticNodes) -> None:
    """Pearson's statistic over all words of a node, whose expected counts are known document by document."""
    for name, corpus in nodes.train.items():
        expected = (nodes.theta[name] * corpus.lengths()[:, None]).sum(axis=0) @ nodes.beta
        found = np.asarray(corpus.counts.sum(axis=0)).ravel()
        common = expected > 20
        statistic = ((found - expected)[common] ** 2 / expected[common]).sum()
        assert abs(statistic - common.sum()) < 5 * np.sqrt(2 * common.sum())
        assert found[expected < 1e-12].sum() == 0


def test_nodes_share_some_topics_and_have_others_of_their_own() -> None:
    nodes = lda_nodes(replace(SMALL, topics=11, shared=2), seed=5)
    used = {name: set(np.flatnonzero(theta.sum(axis=0)).tolist()) for name, theta in nodes.theta.items()}
    assert used == {"node-1": {0, 1, 2, 3, 4}, "node-2": {0, 1, 5, 6, 7}, "node-3": {0, 1, 8, 9, 10}}
    only = nodes.beta[[0, 1, 2, 3, 4]].max(axis=0) < 1e-12
    assert np.asarray(nodes.train["node-1"].counts.sum(axis=0)).ravel()[only].sum() == 0


# ---- streams ---------------------------------------------------------------------------------------------------------

STREAM = SyntheticStream(700, words=30, topics=3, length=20, seed=5, block_documents=300)


def test_a_block_is_the_same_alone_and_in_the_whole_corpus() -> None:
    whole, blocks = STREAM.corpus(), list(STREAM)
    assert [len(block) for block in blocks] == [300, 300, 100]
    for first, block in zip((0, 300, 600), blocks, strict=True):
        part = whole.select(np.arange(first, first + len(block)))
        assert np.array_equal(part.keys, block.keys)
        assert np.array_equal(part.tokens, block.tokens)
        assert (part.counts != block.counts).nnz == 0
    assert not np.array_equal(blocks[0].tokens, blocks[1].tokens)
