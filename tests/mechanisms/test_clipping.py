"""Bounds that are kept, row by row, and that depend on nothing but the row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from securetm.contracts import INF, Block, Mechanism, Noised, Terms
from securetm.errors import BadSetting
from securetm.mechanisms.clipping import BoundedCounts, Clip, at_most
from securetm.testing.mechanism_laws import COHORT, MechanismLaws, integer_terms

REAL = Terms((Block("a", (3, 2)), Block("b", (5,))))
COUNTS = integer_terms()


class TestClip(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return Clip(0.8)


@pytest.mark.parametrize(("most", "each"), [(1, 1), (4, 1), (6, 2), (3, 5)])
class TestBoundedCounts(MechanismLaws):
    @pytest.fixture
    def mechanism(self, most: int, each: int) -> Mechanism:
        return BoundedCounts(most, each)

    @pytest.fixture
    def before(self) -> Terms:
        return COUNTS


class TestBoundedCountsOfABoundedQuestion(MechanismLaws):
    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return BoundedCounts(3, 7)

    @pytest.fixture
    def before(self) -> Terms:
        return integer_terms(l1=11.0, l2=11**0.5, linf=1.0)


def test_the_bounds_are_written_once() -> None:
    clipped = Clip(0.5).admit(REAL, COHORT)
    assert (clipped.l2, clipped.linf, clipped.l1) == (0.5, 0.5, 0.5 * 11**0.5)
    bounded = BoundedCounts(8, 2).admit(COUNTS, COHORT)
    assert (bounded.l1, bounded.l2, bounded.linf) == (8.0, 4.0, 2.0)


@pytest.mark.parametrize(
    ("mechanism", "terms"),
    [
        (Clip(1.0), COUNTS),
        (Clip(1.0), replace(REAL, noised=Noised.WHOLE)),
        (Clip(1.0), replace(REAL, ragged=True)),
        (BoundedCounts(3), REAL),
        (BoundedCounts(3), replace(COUNTS, names_words=True)),
        (BoundedCounts(3), replace(COUNTS, noised=Noised.WHOLE)),
    ],
)
def test_what_is_not_for_it_passes_as_it_is(mechanism: Mechanism, terms: Terms) -> None:
    rows = np.full((2, 11), 9)
    assert mechanism.admit(terms, COHORT) == terms
    assert mechanism.row_radius(terms) == INF
    assert mechanism.on_rows(rows, terms) is rows


def random_counts(rows: int, columns: int, mean: float) -> Any:
    return sparse.csr_array(np.random.default_rng(0).poisson(mean, (rows, columns)))


@pytest.mark.parametrize(("most", "each"), [(1, 1), (10, 1), (7, 3), (500, 2)])
def test_a_row_keeps_as_much_as_it_may(most: int, each: int) -> None:
    rows = random_counts(300, 50, 0.4)
    kept, full = at_most(rows, most, each).toarray(), rows.toarray()
    assert (kept <= np.minimum(full, each)).all()
    np.testing.assert_array_equal(kept.sum(axis=1), np.minimum(np.minimum(full, each).sum(axis=1), most))


def test_signs_and_broken_values_are_bounded_too() -> None:
    rows = np.array([[-9, 4, -1, 0], [np.iinfo(np.int64).min, 0, 0, 1]])
    assert np.abs(at_most(rows, 3, 2)).sum(axis=1).tolist() == [3, 3]
    assert (at_most(rows, 3, 2) * rows >= 0).all()
    strange = at_most(np.array([[np.nan, np.inf, -np.inf, 0.9]]), 4, 2)
    assert strange.tolist() == [[0, 2, -2, 0]]


def test_how_a_row_is_stored_makes_no_difference() -> None:
    data, columns = np.array([1, 1, 1, 0, 1]), np.array([7, 2, 7, 5, 0])
    untidy = sparse.csr_array((data, columns, [0, 5]), shape=(1, 9))
    np.testing.assert_array_equal(at_most(untidy, 2, 2).toarray(), at_most(untidy.toarray(), 2, 2))
    assert untidy.nnz == 5  # and the caller's rows are left alone


def test_no_column_is_preferred() -> None:
    rng = np.random.default_rng(2)
    rows = np.array([rng.permutation([1] * 20 + [0] * 20) for _ in range(4000)])
    share = at_most(rows, 5, 1).sum(axis=0) / rows.sum(axis=0)
    assert np.abs(share - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 2000)


@pytest.mark.parametrize("made", [lambda: Clip(0.0), lambda: Clip(INF), lambda: Clip(np.nan), lambda: BoundedCounts(0)])
def test_settings_are_checked(made: Any) -> None:
    with pytest.raises(BadSetting):
        made()
