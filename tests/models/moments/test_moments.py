"""Moments: the rows of documents, what a sum of them shows, and the topics that explain it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import securetm
from securetm.contracts import Answer, Array
from securetm.corpus.corpus import Corpus
from securetm.errors import BrokenPromise, Failed
from securetm.models.mixed_topics import BagDocuments
from securetm.models.moments import DocumentPairs, Moments, PairSums, grid_of, size_of
from tests.models.trained_by_hand import sum_of

WORDS, SUBJECTS = 60, 3


def planted(documents: int = 300, words_each: int = 12, seed: int = 0) -> Any:
    """Counts of documents that each have one of three subjects, whose words no other subject has."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((documents, WORDS), dtype=np.int64)
    for d in range(documents):
        np.add.at(counts[d], rng.integers(0, WORDS // SUBJECTS, words_each) * SUBJECTS + d % SUBJECTS, 1)
    return sparse.csr_array(counts)


def corpus_of(counts: Any) -> Corpus:
    return Corpus.from_counts(counts, tuple(f"w{n:02}" for n in range(counts.shape[1])), longest=2**31 - 1)


def summed(counts: Any, radius: float = np.inf) -> Array:
    """The answer to the only question, flat."""
    words = counts.shape[1]
    model = Moments(n_topics=2)
    return sum_of(
        model.query(model.start([str(n) for n in range(words)], np.random.default_rng(0))), corpus_of(counts), radius=radius
    ).vector()


ADVERSARIES = {
    "one word a thousand times": {3: 1000},
    "two words": {0: 1, 59: 10**9},
    "every word once": dict.fromkeys(range(WORDS), 1),
    "every word a million times": dict.fromkeys(range(WORDS), 10**6),
    "empty": {},
}


def document(name: str, words: int = WORDS) -> Any:
    counts = np.zeros((1, words), dtype=np.int64)
    for word, times in ADVERSARIES[name].items():
        counts[0, word] = times
    return sparse.csr_array(counts)


@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("radius", [1.0, 0.25])
def test_no_document_moves_the_sum_further_than_the_terms_say(name: str, radius: float) -> None:
    others = planted(20)
    moved = summed(sparse.vstack([others, document(name)]), radius) - summed(others, radius)
    assert np.linalg.norm(moved) <= min(radius, 1.0)
    if name != "empty":
        assert np.linalg.norm(moved) > 0.9 * min(radius, 1.0)


@pytest.mark.parametrize("words", [2, 3, 300])
def test_a_row_is_at_most_as_long_as_one_however_many_words_it_has(words: int) -> None:
    counts = sparse.csr_array(np.tril(np.ones((words, words), dtype=np.int64)))
    rows = DocumentPairs.from_bags(BagDocuments.from_counts(counts, words), 0.2, words)
    lengths = rows.norms(np.arange(words))
    assert lengths.max() < 1 - 2.0**-35
    assert lengths.min() > 0.9


def test_the_sum_is_exact_in_any_order_and_over_any_parties() -> None:
    counts = planted(97, 9)
    backwards = counts[np.arange(97)[::-1]]
    np.testing.assert_array_equal(summed(counts), summed(backwards))
    np.testing.assert_array_equal(summed(counts), summed(counts[:40]) + summed(counts[40:]))
    steps = summed(counts) / grid_of(WORDS)
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_rounding_at_parties_is_undone_where_there_is_no_noise() -> None:
    row, words = summed(planted(50)), WORDS
    off = row + 0.49 * grid_of(words) * np.random.default_rng(0).uniform(-1, 1, len(row))
    np.testing.assert_array_equal(PairSums.from_row(off, words, 0.0, 0.2).pairs, PairSums.from_row(row, words, 0.0, 0.2).pairs)


def test_pairs_and_words_are_counted() -> None:
    counts = sparse.csr_array(np.array([[1, 5, 0], [1, 1, 0], [0, 0, 7]]))
    sums = PairSums.from_row(summed(counts), 3, 0.0, 0.2)
    np.testing.assert_allclose(sums.pairs, np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]) * 2 * np.sqrt(0.8), atol=0.2)
    np.testing.assert_allclose(sums.alone, [2 * np.sqrt(0.1), 2 * np.sqrt(0.1), 1], atol=0.2)


def test_topics_stand_out_of_noise() -> None:
    model, counts = Moments(n_topics=SUBJECTS), planted(3000)
    state = model.start([str(n) for n in range(WORDS)], np.random.default_rng(0))
    noisy = summed(counts) + np.random.default_rng(1).normal(0, 3.73, size_of(WORDS))
    after = model.update(state, Answer({"pairs": noisy}, deviation=3.73))
    whose = model.topics(after).reshape(SUBJECTS, -1, SUBJECTS).sum(axis=1)
    assert sorted(whose.argmax(axis=1)) == [0, 1, 2]
    assert whose.max(axis=1).min() > 0.8
    assert model.findings(after)["topics_beyond_noise"] == SUBJECTS


@pytest.mark.parametrize("documents", [0, 1, 300])
def test_any_answer_leaves_topics(documents: int) -> None:
    """Noise alone, sums below zero and empty ones."""
    model = Moments(n_topics=4)
    state = model.start([str(n) for n in range(WORDS)], np.random.default_rng(0))
    for total in (summed(planted(documents)), -summed(planted(300)), np.random.default_rng(0).normal(0, 9, size_of(WORDS))):
        for deviation in (0.0, 9.0):
            after = model.update(state, Answer({"pairs": total}, deviation=deviation))
            assert model.fits(after, WORDS)
            np.testing.assert_allclose(model.topics(after).sum(axis=1), 1)
            assert (model.topics(after) > 0).all()


def test_as_many_topics_as_stand_beyond_the_noise(tmp_path: Path) -> None:
    model = securetm.Moments(n_topics=0).fit(planted(3000), epochs=1)
    assert model.components_.shape == (SUBJECTS, WORDS)
    model.save(tmp_path / "model.safetensors")
    again = securetm.Moments.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.components_, model.components_)


def test_a_forged_state_is_refused_or_harmless() -> None:
    model = Moments(n_topics=2)
    state = {**model.start(["a", "b", "c"], np.random.default_rng(0)), "topics": np.array([[np.nan, np.inf, -1.0], [0, 0, 0]])}
    np.testing.assert_allclose(model.topics(state).sum(axis=1), 1)
    with pytest.raises(BrokenPromise, match="table of topics"):
        Moments(n_topics=3).topics(state)


def test_too_many_words_are_refused_by_name() -> None:
    with pytest.raises(Failed, match="10,001 words"):
        Moments(n_topics=2).start([str(n) for n in range(10_001)], np.random.default_rng(0))
