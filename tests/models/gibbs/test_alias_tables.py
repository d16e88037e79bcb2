"""An alias table holds the distribution it was built from, to the last cell, and draws from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from securetm.models.lda.samplers import OTHER, build, draw, tables_of


def shares_of(tables: np.ndarray) -> np.ndarray:
    """The probability of each outcome, read back from the tables."""
    bits = tables.view(np.uint64)
    own = np.minimum((bits & ~OTHER).view(np.float64), 1.0)
    shares = own.copy()
    rows = np.repeat(np.arange(len(tables)), tables.shape[1])
    np.add.at(shares, (rows, (bits & OTHER).astype(np.int64).ravel()), (1.0 - own).ravel())
    return shares / tables.shape[1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e9)), min_size=1, max_size=70).filter(lambda row: sum(row) > 0),
)
def test_cells_add_up_to_the_distribution(row):
    weights = np.array([row])
    tables, sums = tables_of(weights)
    expected = weights / weights.sum()
    np.testing.assert_allclose(sums, weights.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(shares_of(tables), expected, rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("k", [1, 2, 50, 200, 1 << 16])
def test_counts_of_words_keep_their_shares(k):
    rng = np.random.default_rng(k)
    weights = np.where(rng.random((3, k)) < 0.9, 0.01, rng.integers(1, 10_000, (3, k)) + 0.01)
    np.testing.assert_allclose(shares_of(tables_of(weights)[0]), weights / weights.sum(axis=1, keepdims=True), rtol=1e-6)


def test_ranges_of_rows_and_a_scale_give_the_same_tables():
    rng = np.random.default_rng(0)
    weights, scale = rng.random((7, 5)), rng.random(5)
    whole, sums = tables_of(weights * scale)
    parts, found = np.empty((7, 5)), np.empty(7)
    for first, last in ((0, 3), (3, 7)):
        build(first, last, weights, scale, parts.view(np.uint64), found)
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(found, sums)


@njit
def _drawn(table, bits, chances):
    return np.array([draw(table, bits, chance) for chance in chances])


def test_draws_fall_as_the_table_says():
    weights = np.array([[3.0, 0.0, 1.0, 0.5, 10.0]])
    table = tables_of(weights)[0][0]
    chances = (np.arange(100_000) + 0.5) / 100_000  # evenly spread: no chance in this test
    found = np.bincount(_drawn(table, table.view(np.uint64), chances), minlength=5) / 100_000
    np.testing.assert_allclose(found, weights[0] / weights.sum(), atol=1e-4)
    assert _drawn(table, table.view(np.uint64), np.array([np.nextafter(1.0, 0.0)]))[0] < 5
