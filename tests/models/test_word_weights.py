"""Weights of words in a clipped row: powers of two from public frequencies, undone where the sum arrives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from securetm.contracts import Answer
from securetm.models.lda.lda_vi import EXPONENTS, DocumentBounds, VariationalLDA, exponents_for, weights_in
from securetm.models.public_knowledge import PublicKnowledge
from tests.models.trained_by_hand import planted

WORDS = 40


def _knowledge(topics: int) -> PublicKnowledge:
    rng = np.random.default_rng(5)
    frequencies = np.geomspace(1.0, 1e-5, WORDS)
    vectors = rng.normal(size=(WORDS, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    table = rng.dirichlet(np.ones(WORDS), topics)
    return PublicKnowledge(table, vectors.astype(np.float32), frequencies / frequencies.sum())


def test_frequent_words_weigh_less() -> None:
    exponents = exponents_for(np.geomspace(1.0, 1e-9, 50))
    assert (np.diff(exponents) >= 0).all()
    assert exponents[0] < 0 < exponents[-1]
    assert np.abs(exponents).max() <= 4
    assert not exponents_for(np.full(7, 3.0)).any()
    assert np.isfinite(exponents_for(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize("asked", [np.full(3, 2**40), np.full(3, -(2**40))])
def test_a_lie_about_weights_is_clamped(asked: Any) -> None:
    assert set(np.abs(np.log2(weights_in({EXPONENTS: asked}))).tolist()) == {4.0}


def test_a_row_is_as_long_as_its_weighted_counts() -> None:
    (corpus, _), model = planted(12), VariationalLDA(n_topics=3)
    words = len(corpus.vocabulary)
    state = model.start(corpus.vocabulary, np.random.default_rng(0))
    state = {**state, EXPONENTS: np.arange(words) % 5 - 2}
    bounds = DocumentBounds.found(model, state, model.counted(corpus, words))
    rows = np.array([bounds.gradient(np.eye(len(corpus))[n]) for n in range(len(corpus))])
    np.testing.assert_allclose(bounds.norms(np.arange(len(corpus))), np.linalg.norm(rows, axis=1), rtol=1e-12)
    plain = DocumentBounds.found(model, {**state, EXPONENTS: np.zeros(words, np.int64)}, model.counted(corpus, words))
    weighted = plain.gradient(np.ones(len(corpus))).reshape(3, -1) * weights_in(state)
    assert np.array_equal(bounds.gradient(np.ones(len(corpus))), weighted.ravel())  # to the last bit


def test_weights_are_undone_with_their_noise() -> None:
    model = VariationalLDA(n_topics=3, eta=0.1)
    state = model.started([f"w{n}" for n in range(WORDS)], _knowledge(3), np.random.default_rng(0))
    weights = weights_in(state)
    assert len(set(weights.tolist())) > 2
    true = np.full((3, WORDS), 50.0)
    plain = model.update(state, Answer({"counts": true * weights}))
    np.testing.assert_array_equal(plain["counts"], true)
    noised = model.update(state, Answer({"counts": true * weights}, deviation=2.0))
    variance = np.square(noised["noise_by_word"]) * noised["noise"][0]
    np.testing.assert_allclose(np.sqrt(variance), 2.0 / weights, rtol=1e-12)
