"""Bounds what one document, person or party may add to a sum, row by row. It draws no noise.

Where a vector is protected otherwise (it spells out words, or it is noised already) both leave it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from securetm.compiled import njit
from securetm.contracts import INF, Array, Cohort, Domain, Mechanism, Noised, Rows, Terms
from securetm.data_classes import dataclass, replace
from securetm.errors import check_setting
from securetm.extras import sparse
from securetm.mechanisms.noising import check_positive


@dataclass(frozen=True)
class Clip(Mechanism):
    """Scales real rows and gradients of losses down to an l2 norm of at most `radius`. Whole numbers stay as they are."""

    radius: float
    plan_numbers: ClassVar[Mapping[str, str]] = {"radius": "radius"}

    def __post_init__(self) -> None:
        check_positive(self, "radius")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The same terms with the bound on one row. Noise mechanisms scale their noise by it."""
        if not self._concerns(terms):
            return terms
        l2 = min(terms.l2, self.radius)
        return replace(terms, l2=l2, linf=min(terms.linf, l2), l1=min(terms.l1, l2 * terms.size**0.5))

    def row_radius(self, terms: Terms) -> float:
        return min(self.radius, terms.l2) if self._concerns(terms) else INF

    def _concerns(self, terms: Terms) -> bool:
        """Whether this clips rows under these terms. Ragged rows are not summed, so they are not clipped."""
        return terms.domain is Domain.REAL and terms.noised is Noised.NOT and not terms.ragged


@dataclass(frozen=True)
class BoundedCounts(Mechanism):
    """Bounds rows of counts to `most` units in all and `each` in one place. Real rows stay as they are.

    A row with more keeps a part of it, chosen by a public hash of the row itself: which part depends on no other row and not
    on where the row stands, so adding or removing one changes nothing about the others.
    """

    most: int
    each: int = 1

    def __post_init__(self) -> None:
        for name in ("most", "each"):
            check_setting(self, name, 1 <= getattr(self, name) < 1 << 31, "must be at least 1 and below 2^31")

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The same terms with the bounds on one row: the sum of squares is at most the largest value times the sum."""
        if not self._concerns(terms):
            return terms
        linf, l1 = min(terms.linf, self.each, self.most), min(terms.l1, self.most, self.each * terms.size)
        return replace(terms, linf=linf, l1=l1, l2=min(terms.l2, (l1 * linf) ** 0.5))

    def on_rows(self, rows: Rows, terms: Terms) -> Rows:
        """Run by a party: bounds the sum of each owner's rows."""
        return at_most(rows, self.most, self.each) if self._concerns(terms) else rows

    def _concerns(self, terms: Terms) -> bool:
        """Whether this bounds rows under these terms. The rows behind a vector on a grid are real numbers."""
        counted = terms.domain is Domain.INTEGER and terms.grid == 0
        return counted and terms.noised is Noised.NOT and not terms.names_words and not terms.ragged


def at_most(rows: Rows, most: int, each: int) -> Rows:
    """Rows of whole numbers with at most `most` units in all and `each` in one place; a sparse matrix stays sparse."""
    table = sparse.csr_array(rows, copy=True)
    table.sum_duplicates()  # and in order of columns: a row is the same however it was stored
    table.data = np.clip(np.trunc(np.nan_to_num(table.data)), -each, each).astype(np.int64)
    table.eliminate_zeros()
    _cut(table.data, table.indices, table.indptr, most)
    table.eliminate_zeros()
    return table if sparse.issparse(rows) else table.toarray()


@njit(cache=True)
def _mixed(x: np.uint64) -> np.uint64:
    """splitmix64's finaliser: every input bit reaches every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def _cut(counts: Array, columns: Array, ends: Array, most: int) -> None:
    """Keeps the first `most` units of each row, in the order of columns that the row's own hash gives."""
    for row in range(len(ends) - 1):
        first, last = ends[row], ends[row + 1]
        if np.abs(counts[first:last]).sum() <= most:
            continue
        name = np.uint64(0)
        for i in range(first, last):  # a sum, so that the row's name does not depend on how it is stored
            name += _mixed(_mixed(np.uint64(columns[i]) + np.uint64(1)) ^ np.uint64(counts[i]))
        places = np.empty(last - first, dtype=np.uint64)
        for i in range(first, last):
            places[i - first] = _mixed(name ^ _mixed(np.uint64(columns[i]) + np.uint64(0x9E3779B97F4A7C15)))
        left = most
        for i in np.argsort(places):
            taken = min(left, abs(counts[first + i]))
            counts[first + i] = taken if counts[first + i] > 0 else -taken
            left -= taken
