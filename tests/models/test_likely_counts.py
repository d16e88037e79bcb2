"""Posterior means behind known noise: the table itself without noise, the prior where there is nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.contracts import Array
from securetm.models.noisy_counts import explained, likely_counts, likely_totals, shares_of_words

TOPICS, WORDS = 6, 200


def table(seed: int = 0) -> tuple[Array, Array, Array]:
    """True counts whose shares follow word vectors, what was asked with, and the vectors."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(WORDS, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    logs = 3 * rng.normal(size=(TOPICS, 5)) @ vectors.T
    asked = np.exp(0.5 * logs) / np.exp(0.5 * logs).sum(axis=0)
    truth = np.exp(logs + 0.3 * rng.normal(size=logs.shape))
    return truth / truth.sum(axis=0) * rng.exponential(600, WORDS), asked, vectors.astype(np.float32)


def read(
    truth: Array, asked: Array, vectors: Array | None, deviation: Array | float, seed: int = 1
) -> tuple[Array, Array, Array]:
    """A noised table, the likely counts behind it, and the likely totals."""
    noised = truth + np.random.default_rng(seed).normal(0, 1, truth.shape) * deviation
    totals = likely_totals(noised.sum(axis=0), np.asarray(deviation) * np.sqrt(len(truth)))
    return noised, likely_counts(noised, deviation, asked, totals, vectors), totals


def test_without_noise_the_table_comes_out() -> None:
    truth, asked, vectors = table()
    np.testing.assert_array_equal(read(truth, asked, vectors, 0.0)[1], truth)
    np.testing.assert_allclose(read(truth, asked, vectors, 1e-3)[1], truth, rtol=1e-2, atol=0.5)


@pytest.mark.parametrize("known", [True, False], ids=["vectors", "no vectors"])
def test_where_there_is_nothing_but_noise_the_prior_comes_out(known: bool) -> None:
    truth, asked, vectors = table()
    _, found, totals = read(truth, asked, vectors if known else None, 1e6)
    np.testing.assert_allclose(found / totals, shares_of_words(asked), rtol=1e-6)
    np.testing.assert_allclose(totals, totals.mean(), rtol=0.2)


@pytest.mark.parametrize(("deviation", "known"), [(3.0, True), (100.0, False)], ids=["vectors", "no vectors"])
def test_it_is_nearer_to_the_truth_than_the_noised_table_and_than_the_prior(deviation: float, known: bool) -> None:
    truth, asked, vectors = table()
    noised, found, totals = read(truth, asked, vectors if known else None, deviation)
    errors = [float(np.square(one - truth).mean()) for one in (found, noised, shares_of_words(asked) * totals)]
    assert errors[0] < min(errors[1:])


def test_no_count_is_negative_and_each_words_counts_sum_to_its_total() -> None:
    truth, asked, vectors = table()
    _, found, totals = read(truth, asked, vectors, 50.0)
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=0), totals)
    np.testing.assert_array_equal(found, read(truth, asked, vectors, 50.0)[1])


def test_noise_may_differ_by_word() -> None:
    truth, asked, vectors = table()
    deviations = np.where(np.arange(WORDS) % 2, 1e-3, 300.0)
    _, found, _ = read(truth, asked, vectors, deviations)
    np.testing.assert_allclose(found[:, 1::2], truth[:, 1::2], rtol=1e-2, atol=0.5)
    assert np.square(found[:, ::2] - truth[:, ::2]).mean() < 0.5 * 300.0**2


def test_totals_are_nearer_to_the_truth_than_noised_ones_and_nearer_still_with_public_frequencies() -> None:
    rng = np.random.default_rng(0)
    truth = 1000.0 / np.arange(1, 301)
    noised = truth + rng.normal(0, 20, 300)
    public = truth * np.exp(0.3 * rng.normal(size=300))
    plain, helped = (likely_totals(noised, 20.0, given) for given in (None, public / public.sum()))
    errors = [float(np.square(one - truth).sum()) for one in (noised, plain, helped)]
    assert errors[0] > errors[1] > errors[2]
    assert min(plain.min(), helped.min()) > 0


def test_means_and_evidence_are_those_of_the_dense_formula() -> None:
    rng = np.random.default_rng(0)
    found, scale = rng.normal(size=(3, 40)), rng.uniform(0.5, 2, (3, 40))
    features, noise = rng.normal(size=(40, 4)), rng.uniform(0.1, 1, 40)
    (means, said), evidence = explained(found, scale, noise, features, 0.7), 0.0
    for row, by, mean in zip(found, scale, means, strict=True):
        common = by[:, None] * (features @ features.T) * by
        both = common + np.diag(0.7 * by**2 + noise)
        np.testing.assert_allclose(mean, common @ np.linalg.solve(both, row), rtol=1e-9)
        evidence -= 0.5 * float(row @ np.linalg.solve(both, row) + np.linalg.slogdet(both)[1])
    assert said == pytest.approx(evidence, rel=1e-9)
