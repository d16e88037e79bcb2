"""A stream of synthetic documents: every block comes from the seed and its number alone, and has the topics that it names."""

from __future__ import annotations

import numpy as np

from lab.synthetic_documents import SyntheticStream

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


def test_words_come_as_often_as_the_topics_say() -> None:
    """All topics are alike, so a word's share is its mean over topics; documents vary by their topics, hence the wide limit."""
    stream = SyntheticStream(20_000, words=30, topics=3, length=20, seed=1)
    shares = np.bincount(stream.tokens(0).ravel(), minlength=30) / 400_000
    assert np.abs(shares - stream.beta.mean(axis=0)).max() < 6.2 * np.sqrt(0.25 / 20_000)


def test_documents_hold_to_few_topics() -> None:
    """With two topics, two tokens of a document have the same one with chance (alpha + 1) / (2 alpha + 1)."""
    stream = SyntheticStream(20_000, words=2, topics=2, length=2, alpha=0.1, seed=2)
    vars(stream)["beta"] = np.eye(2)  # each topic has one word
    first, second = stream.tokens(0).T
    assert abs((first == second).mean() - 1.1 / 1.2) < 6.2 * np.sqrt(0.25 / 20_000)
