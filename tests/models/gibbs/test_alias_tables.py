"""An alias table holds the distribution it was built from, to the last cell, and draws from it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from securetm.compiled import njit
from securetm.models.lda.samplers import OTHER, draw, tables_of


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


@njit()
def _drawn(table, bits, chances):
    return np.array([draw(table, bits, chance) for chance in chances])


def test_draws_fall_as_the_table_says():
    weights = np.array([[3.0, 0.0, 1.0, 0.5, 10.0]])
    table = tables_of(weights)[0][0]
    chances = (np.arange(100_000) + 0.5) / 100_000  # evenly spread: no chance in this test
    found = np.bincount(_drawn(table, table.view(np.uint64), chances), minlength=5) / 100_000
    np.testing.assert_allclose(found, weights[0] / weights.sum(), atol=1e-4)
    assert _drawn(table, table.view(np.uint64), np.array([np.nextafter(1.0, 0.0)]))[0] < 5
