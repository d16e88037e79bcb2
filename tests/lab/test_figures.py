"""What the lab measures: n-grams, topics of embeddings, ProdLDA and made-up documents, each as its name says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from lab.bench.semantic import OURS, SEEDS, cases, goals
from lab.bench.semantic_judged import Topics, judged, packed, summary, unpacked
from lab.keeping import fits
from lab.peers.ngrams import ELSEWHERE, NGrams, contexts
from lab.reproduce.additive_prodlda import ADDITIVE, NEWSGROUPS, REFERENCE, TUNED, judge
from lab.synthetic_documents import LdaNodes, SyntheticNodes, SyntheticStream, lda_nodes
from securetm.corpus.corpus import Corpus
from securetm.errors import BadSetting

from ..corpus.generated import check

# ---- n-grams ---------------------------------------------------------------------------------------------------------------


A, B, C = range(3)


# ---- n-grams ---------------------------------------------------------------------------------------------------------


def test_pairs_of_words_by_hand() -> None:
    """Text: a b a c. Every pair came once, so one half is taken of each; a came after two kinds, b and c after one."""
    model = NGrams.from_tokens(np.array([A, B, A, C]), np.array([4]), words=3, order=2)
    single = np.array([1.5, 0.5, 0.5]) / 4 + (1.5 / 4) / 3
    np.testing.assert_allclose(single, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(model.after(np.array([A])), [0.25, 0.375, 0.375])  # 0, 1/4 and 1/4, and half of the above
    np.testing.assert_allclose(model.after(np.array([C])), single)  # nothing ever came after c
    np.testing.assert_allclose(model.after(np.array([], dtype=np.int64)), [0.75, 0.125, 0.125])  # a began the only sentence
    np.testing.assert_allclose(model.chances(np.array([A, A, C]), np.array([2, 3])), [0.75, 0.25, 0.125])


texts = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=0, max_size=12)


# ---- topics ----------------------------------------------------------------------------------------------------------

TEXT = np.array([0, 1, 2, ELSEWHERE, 3, 0, 0, 2])
SENTENCES, DOCUMENTS = np.array([2, 4, 5, 7, 8]), np.array([5, 8])


def test_the_context_of_a_sentence_is_its_document_before_it() -> None:
    found = contexts(TEXT, DOCUMENTS, SENTENCES, tuple("wxyz"))
    np.testing.assert_array_equal(found.counts.toarray(), [[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0] * 4, [2, 0, 0, 0]])
    assert found.tokens.tolist() == [0, 1, 0, 1, 2, 0, 0]
    assert found.token_ends.tolist() == [0, 2, 5, 5, 7]
    assert found.sentence_ends.tolist() == [2, 4, 5, 7]


# ---- topics from embeddings ------------------------------------------------------------------------------------------------


SUBJECTS = ("river water lake boat fish swim rain wave sail coast", "court judge trial law jury crime guilt bail plea oath")


def figures(hard: Any, words: Any = SUBJECTS) -> Any:
    """Of 200 documents of two subjects, which such topics were found in."""
    texts = [" ".join(np.random.default_rng(n).permutation(SUBJECTS[n % 2].split())[:6]) for n in range(200)]
    corpus = Corpus.from_strings(texts, labels=[str(n % 2) for n in range(200)])
    shares = np.eye(2)[np.maximum(hard, 0)] * (hard >= 0)[:, None]
    return judged(corpus, Topics(shares, hard, [row.split() for row in words]))


def test_topics_that_are_the_labels_are_the_best() -> None:
    found = figures(np.arange(200) % 2)
    assert found["f1"] == found["f1_plain"] == found["nmi"] == found["diversity"] == 1
    assert found["outliers"] == 0
    assert found["topics"] == 2
    mixed = figures(np.arange(200) // 100, [" ".join(a + " " + b for a, b in zip(*map(str.split, SUBJECTS)))] * 2)  # noqa: B905
    assert max(mixed["f1"], mixed["f1_plain"]) < 0.7
    assert mixed["nmi"] < 0.1
    assert mixed["diversity"] == 0.5
    assert mixed["npmi"] < found["npmi"]
    assert mixed["embedding_coherence"] < found["embedding_coherence"]


def test_seeds_are_compared_with_each_other() -> None:
    one, other = np.arange(60) % 3, np.random.default_rng(0).integers(3, size=60)
    assert np.array_equal(unpacked(packed(one)), one)
    fit = {"corpus": "c", "system": "s", **dict.fromkeys(("f1", "f1_plain", "npmi", "embedding_coherence", "diversity"), 0.5)}
    fit |= dict.fromkeys(("outliers", "topics", "seconds", "processor"), 1)
    same, apart = (
        [{**fit, "nmi": nmi, "hard": packed(hard)} for nmi, hard in zip((0.4, 0.6), pair, strict=True)]
        for pair in ((one, 2 - one), (one, other))
    )
    (row,) = summary(same)
    assert (row["seeds"], row["nmi"], row["rand"]) == (2, 0.5, 1)
    assert row["nmi_away"] == pytest.approx(12.706 * 0.1, rel=0.01)
    assert summary(apart)[0]["rand"] < 0.2
    assert goals(summary(same)) == []  # of no system and corpus that is judged


def test_a_fit_of_ours_is_of_this_source_and_one_of_a_package_is_not() -> None:
    keys = list(cases(None))
    assert len(keys) == 3 * sum(SEEDS.values())
    assert all(("source" in key) == (key["system"] in OURS) for key in keys)
    chosen = [key for key in keys if fits(key, ["system=s3", "seed=0"], "bench")]
    assert {key["corpus"] for key in chosen} == {"StackOverflow", "TagMyNews", "20 Newsgroups"}
    with pytest.raises(BadSetting):
        fits(keys[0], ["colour=red"], "bench")


# ---- ProdLDA ---------------------------------------------------------------------------------------------------------------


def row(network, seed, npmi, diverse):
    return {"network": network, "seed": seed, "npmi": npmi, "diversity": diverse, "product": npmi * diverse}


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ((0.30, 0.78), (0.255, 0.69), "holds"),
        ((0.25, 0.95), (0.255, 0.69), "fails"),  # a better product does not make up for coherence
        ((0.30, 0.50), (0.255, 0.69), "fails"),
        ((0.30, 0.78), (0.241, 0.69), "void"),
        ((0.30, 0.78), (0.255, 0.71), "void"),
    ],
)
def test_the_verdict_needs_a_valid_reference_and_both_figures(ours, theirs, verdict):
    rows = [row(ADDITIVE, 0, *ours), row(REFERENCE, 0, *theirs)]
    means = {ADDITIVE: rows[0], REFERENCE: rows[1], TUNED: row(TUNED, "mean", 0.29, 0.75)}
    judged = judge(NEWSGROUPS, rows, means)
    assert judged["verdict"] == verdict
    assert judged["on_every_seed"] is (ours == (0.30, 0.78))


# ---- made-up documents -----------------------------------------------------------------------------------------------------


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
