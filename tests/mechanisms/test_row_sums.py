"""The sum of clipped rows: whatever a row holds and however it is stored, its owner moves the sum by the radius at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import INF, Array, Block, Domain, Terms, Unit

SIZE, RADIUS = 1000, 2.0
KINDS = pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
SPIKE = np.eye(SIZE)[7]


def summed(rows: Any, radius: float = RADIUS, **terms: Any) -> Array:
    added = ClippedRowSum(Terms((Block("a", (SIZE,)),), bits=64, **terms), radius, persons=np.zeros(rows.shape[0], np.int64))
    added.add(rows, np.arange(rows.shape[0]))
    return added.vector()


@KINDS
@pytest.mark.parametrize("domain", Domain)
@pytest.mark.parametrize("row", [np.full(SIZE, 5.0), 1e300 * SPIKE, np.where(SPIKE, np.inf, 1), np.where(SPIKE, np.nan, 1)])
def test_no_row_moves_the_sum_by_more_than_the_radius(kind: Any, domain: Domain, row: Array) -> None:
    ordinary = 3 * SPIKE + SPIKE[::-1]
    moved = summed(kind(np.vstack([ordinary, row])), domain=domain) - summed(kind(ordinary[None]), domain=domain)
    assert np.linalg.norm(moved) <= RADIUS * (1 + 1e-12)


@KINDS
@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_counts_as_nothing_even_without_a_clip(kind: Any, broken: float) -> None:
    rows = np.vstack([3 * SPIKE, np.where(SPIKE, broken, 1)])
    np.testing.assert_array_equal(summed(kind(rows), INF), 3 * SPIKE)


@KINDS
def test_a_whole_number_that_cannot_be_summed_becomes_the_largest_that_can(kind: Any) -> None:
    rows = kind(np.vstack([-1e300 * SPIKE, 1e300 * SPIKE, 1e300 * SPIKE]))
    np.testing.assert_array_equal(summed(rows, INF, domain=Domain.INTEGER), 2**52 * SPIKE)


def test_all_rows_of_a_person_are_bounded_together() -> None:
    assert np.linalg.norm(summed(np.tile(RADIUS * SPIKE, (3, 1)), unit=Unit.PERSON)) == pytest.approx(RADIUS)
    assert np.linalg.norm(summed(np.tile(RADIUS * SPIKE, (3, 1)))) == pytest.approx(3 * RADIUS)


@dataclass
class Gradients:
    """Losses whose gradients are given."""

    rows: Array

    @property
    def values(self) -> Array:
        return np.ones(len(self.rows))

    def norms(self, owners: Array) -> Array:
        return np.array([np.linalg.norm(self.rows[owners == one].sum(axis=0)) for one in np.unique(owners)])

    def gradient(self, weights: Array) -> Array:
        return np.asarray(weights @ self.rows)


@pytest.mark.parametrize("beside", [0.0, 1.0, 30.0])
def test_a_gradient_is_bounded_with_the_coordinates_beside_it(beside: float) -> None:
    added = ClippedRowSum(Terms((Block("a", (SIZE + 1,)),), bits=64), RADIUS)
    added.add_losses(Gradients(np.vstack([0 * SPIKE, 1.9 * SPIKE])), np.arange(2), np.array([[0.0], [beside]]))
    length = np.hypot(1.9, beside)
    assert np.linalg.norm(added.vector()) == pytest.approx(min(length, RADIUS))
