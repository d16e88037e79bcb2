"""Private spectral LDA as a baseline: its third moment, the topics that it finds without noise, and its noise."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

from lab.peers.spectral_lda import PrivateSpectralLDA, _decomposed, _SecondMoment, _whitened_third

WORDS, SUBJECTS = 30, 3


def planted(documents: int, seed: int = 0) -> sparse.csr_array:
    """Documents that mix three topics without a word in common."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(SUBJECTS, 0.1), documents)
    topics = np.repeat(np.eye(SUBJECTS), WORDS // SUBJECTS, axis=1) / (WORDS // SUBJECTS)
    return sparse.csr_array(np.array([rng.multinomial(20, row) for row in shares @ topics]))


def test_the_whitened_third_moment_is_that_of_triples_of_words() -> None:
    counts = planted(6)
    second = _SecondMoment.of(sparse.csr_array(counts, dtype=float), 2, 0.2)
    w, a, first = second.whitening, 0.2, second.words
    triples, pairs = np.zeros((WORDS,) * 3), np.zeros((WORDS,) * 2)
    for row in counts.toarray():
        tokens = np.repeat(np.arange(WORDS), row)
        for x, y, z in permutations(range(len(tokens)), 3):
            triples[tokens[x], tokens[y], tokens[z]] += 1 / (20 * 19 * 18)
        for x, y in permutations(range(len(tokens)), 2):
            pairs[tokens[x], tokens[y]] += 1 / (20 * 19)
    beside = np.einsum("ij,k->ijk", pairs, first)
    beside = (beside + beside.transpose(0, 2, 1) + beside.transpose(2, 1, 0)) / 6
    alone = 2 * a**2 / ((a + 1) * (a + 2)) * np.einsum("i,j,k->ijk", first, first, first)
    whole = a * (a + 1) * (a + 2) / 2 * (triples / 6 - a / (a + 2) * beside + alone)
    expected = np.einsum("abc,ai,bj,ck->ijk", whole, w, w, w)
    np.testing.assert_allclose(_whitened_third(sparse.csr_array(counts, dtype=float), second), expected, atol=1e-9)


def test_orthogonal_parts_of_a_tensor_are_found() -> None:
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    values = np.array([4.0, 3.0, 2.0, 1.0])
    found = _decomposed(np.einsum("z,iz,jz,kz->ijk", values, *[directions] * 3), np.random.default_rng(1))
    np.testing.assert_allclose(sorted(value for value, _ in found), sorted(values), atol=1e-6)
    assert np.abs(np.array([vector for _, vector in found]) @ directions).max(axis=1) == pytest.approx(np.ones(4), abs=1e-6)


def test_planted_topics_are_found_without_noise_and_lost_in_it() -> None:
    def purity(epsilon: float | None, seed: int = 0) -> float:
        topics = PrivateSpectralLDA(SUBJECTS, epsilon, 1e-5, seed).fit(planted(2000))
        np.testing.assert_allclose(topics.sum(axis=1), 1)
        return float(topics.reshape(SUBJECTS, SUBJECTS, -1).sum(axis=2).max(axis=0).min())

    assert purity(None) > 0.9
    assert purity(1e6) > 0.9
    # Topics of noise alone hit all three subjects in 6 of 27 draws: 19 of 20 draws less often than once in 10^10 times. Single
    # draws differ between processors, since the sign of an eigenvector is free.
    assert np.mean([purity(1.0, seed) for seed in range(20)]) < 0.9
