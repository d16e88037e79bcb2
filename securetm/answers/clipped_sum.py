"""Clips the rows of documents and adds them up. It draws no noise.

Whoever holds documents runs it: a party in a federation, or `fit` on one machine. A clipped row depends on no other row, to
the last bit, because the squares of its length are added in a fixed order. Clipped rows are summed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from securetm.answers.block_sums import PartialSum
from securetm.compiled import njit
from securetm.contracts import INF, Array, Domain, Losses, Rows, Terms, Unit
from securetm.errors import BrokenPromise, NoPersons, SplitOwner
from securetm.extras import sparse

# `Losses` computes lengths from rounded factors, and may find one too short by less than this. The clip aims below its radius
# by as much, so that the radius holds for the rows that are really summed.
_ROUNDING = 2.0**-36
_LANES = 64  # squares are summed in so many lanes
_NUMBERS = 1 << 62  # the numbers of words that only a party knows are below it
_LARGEST = 2.0**52  # the largest whole number in a row: beyond 2^53 not every whole number is a float64


class ClippedRowSum:
    """Sums rows by their terms. Each owner's row is clipped to `radius`, an owner being a document, person or party.

    An owner's row that is not finite counts as zero, and so does a coordinate of the sum that overflows.
    """

    def __init__(
        self,
        terms: Terms,
        radius: float = INF,
        on_rows: Callable[[Rows], Rows] = lambda rows: rows,
        persons: Array | None = None,
    ) -> None:
        self.terms = terms
        self.radius = radius
        self._persons = persons  # whose each document is, where rows are per person
        self.loss = 0.0  # the mean loss of the rows added; for the party's own store only
        self.losses = 0  # of so many rows
        self.lost = 0  # how many rows and coordinates were not finite; for the party's own store only
        self._on_rows = on_rows
        narrow = terms.bits == 32 and radius == INF  # a clipped sum must keep its bound, so it is in 64 bits
        self._whole = np.int64 if terms.domain is Domain.INTEGER else np.float32 if narrow else np.float64
        self._vector: Array = np.zeros(0 if terms.ragged else terms.size, dtype=self._whole)
        self._ragged: list[Array] = []
        self._met: Array = np.zeros(0, dtype=np.int64)

    def add(self, rows: Rows, owners: Array) -> None:
        """Adds one row per item. Rows of the same owner are summed, then bounded together."""
        if self.terms.ragged:
            self._ragged.append(np.asarray(rows))
            return
        if rows.ndim != 2 or rows.shape[1] != self.terms.size:
            raise BrokenPromise("row", rows.shape[-1], self.terms.size)
        if rows.shape[0] != len(owners):
            raise BrokenPromise("list of owners", len(owners), rows.shape[0])
        if self.terms.names_words:  # `named` has bounded these rows and chosen which words may be named
            self._vector += _sum(rows, self._vector.dtype)
            return
        owners = self._owners(owners)
        self._meet(owners)
        finite, lost = _finite(self._on_rows(joined(rows, owners)))
        self.lost += lost
        owned = clipped(finite, self.radius)
        if self.terms.domain is Domain.INTEGER:  # each row is rounded, not the sum: one row must not move many coordinates
            owned = _whole(owned)
        self._vector += _sum(owned, self._vector.dtype)

    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None:
        """Adds the gradients of one loss per document; `beside` holds each row's other coordinates."""
        if len(owners) == 0:
            return
        owners = self._owners(owners)
        self._meet(owners)
        weights = self._weights(losses, owners, beside)
        gradient = losses.gradient(weights)
        if self.radius == INF and not np.isfinite(gradient).all():  # lengths take time, so they are computed only now
            weights = np.isfinite(self._lengths(losses, owners, beside)).astype(weights.dtype)
            self.lost += int((weights == 0).sum())
            gradient = losses.gradient(weights)
        if len(gradient) + beside.shape[1] != len(self._vector):
            raise BrokenPromise("gradient", len(gradient) + beside.shape[1], len(self._vector))
        if len(self._met) == len(owners):  # the vector still holds zeros, so that reading it can be saved
            self._vector[: len(gradient)] = gradient
        else:
            self._vector[: len(gradient)] += gradient
        self._vector[len(gradient) :] += weights @ beside
        with np.errstate(over="ignore", invalid="ignore"):  # losses may be infinite; nobody else sees them
            self.loss = float(np.mean(losses.values[weights > 0])) if weights.any() else INF
        self.losses = int(np.count_nonzero(weights)) or len(owners)

    def named(self, rows: Rows, owners: Array, numbers: Array) -> Array:
        """The sums of bounded rows over words that only this party knows; 0 for a word that must not be named.

        `numbers` gives each word a number below 2^62 that depends on that word alone. A bound that went by columns would keep
        other words of all documents when one more document brings a new word, because a new word moves all columns after it.
        """
        owners = self._owners(owners)
        self._meet(owners)
        known, first = np.unique(numbers, return_index=True)
        owned = sparse.csr_array(joined(rows, owners))
        bounded = sparse.csr_array(self._on_rows(_over(owned, numbers[owned.indices], _NUMBERS)))
        sums = np.zeros(len(numbers), dtype=np.int64)  # where two words have the same number, only the first may be named
        sums[first] = _sum(_over(bounded, np.searchsorted(known, bounded.indices), len(known)), np.int64)
        return sums

    def partial(self) -> PartialSum:
        """The flat sum of all rows added so far, or the ragged rows, as they are: a later sum may still be added."""
        if not self.terms.ragged:
            whole = self._vector
        elif self._ragged:
            whole = np.concatenate(self._ragged)
        else:
            whole = np.zeros((0, *self.terms.layout[0].shape[1:]), self._whole)
        return PartialSum(whole, self.loss, self.losses, self.lost)

    def vector(self) -> Array:
        """The flat sum of all rows added so far, or the ragged rows unchanged. It is always finite."""
        whole = self.partial().finite()
        self.lost = whole.lost
        return whole.vector

    def blocks(self) -> Mapping[str, Array]:
        return blocks_of(self.vector(), self.terms)

    def _owners(self, owners: Array) -> Array:
        """Whose the rows are: a person's where persons are protected, else as the question says."""
        if self.terms.unit is not Unit.PERSON:
            return owners
        if self._persons is None:
            raise NoPersons()
        return self._persons[owners]

    def _meet(self, owners: Array) -> None:
        """Refuses an owner whose rows were added before: each call bounds them alone, and two bounded rows exceed the bound."""
        if len(self._met) and np.isin(owners, self._met).any():
            raise SplitOwner()
        self._met = np.concatenate([self._met, owners])

    def _weights(self, losses: Losses, owners: Array, beside: Array) -> Array:
        """How far each document's row is shrunk, so that its owner's whole row stays within the radius.

        A row whose length is not finite gets weight 0, so that the sum is the same as without it.
        """
        dtype = self._vector.dtype
        if self.radius == INF:
            return np.ones(len(owners), dtype=dtype)
        lengths = self._lengths(losses, owners, beside)
        self.lost += int((~np.isfinite(lengths)).sum())
        room = self.radius / (1.0 + _ROUNDING)
        shrunk = np.where(np.isfinite(lengths), np.minimum(1.0, room / np.maximum(lengths, 1e-300)), 0.0)
        # A weight too small for its type would be rounded by more than the room that is left for rounding.
        return np.where(shrunk < np.finfo(dtype).tiny, 0.0, shrunk).astype(dtype)

    def _lengths(self, losses: Losses, owners: Array, beside: Array) -> Array:
        """The length of the whole row of each document's owner."""
        _, member = np.unique(owners, return_inverse=True)
        others = np.zeros((int(member.max()) + 1, beside.shape[1]))
        np.add.at(others, member, beside)
        with np.errstate(over="ignore", invalid="ignore"):
            lengths: Array = np.sqrt(losses.norms(owners) ** 2 + _squared_lengths(others))
        return lengths[member]


def blocks_of(vector: Array, terms: Terms) -> dict[str, Array]:
    """A flat vector as named arrays, without copying."""
    if terms.ragged:
        return {terms.layout[0].name: vector}
    ends = np.cumsum([int(np.prod(block.shape)) for block in terms.layout])[:-1]
    return {b.name: part.reshape(b.shape) for b, part in zip(terms.layout, np.split(vector, ends), strict=True)}


def joined(rows: Rows, owners: Array) -> Rows:
    """One row per owner, in the order of their names: its items' rows, added one after the other."""
    names, member = np.unique(owners, return_inverse=True)
    if len(names) == rows.shape[0] and np.array_equal(member, np.arange(len(names))):
        return rows
    group = sparse.csr_array((np.ones(len(member), rows.dtype), (member, np.arange(len(member)))), (len(names), len(member)))
    return group @ rows


def _over(rows: Any, columns: Array, width: int) -> Any:
    """The same entries in other columns."""
    return sparse.csr_array((rows.data, columns, rows.indptr), (rows.shape[0], width))


def clipped(rows: Rows, radius: float) -> Rows:
    """Each row scaled to the radius, in 64 bits; a row that is not finite becomes zeros."""
    if radius == INF:
        return rows
    exact = (
        sparse.csr_array(rows, dtype=np.float64, copy=True) if sparse.issparse(rows) else np.array(rows, np.float64, order="C")
    )
    lengths = np.sqrt(_squared_lengths(exact))
    values, ends = _cells(exact)
    weights = np.where(np.isfinite(lengths), np.minimum(1.0, radius / np.maximum(lengths, 1e-300)), 0.0)
    _scale(values, ends, weights)
    return exact


def _squared_lengths(rows: Rows) -> Array:
    """The squared length of each row, summed in an order that depends on the row alone."""
    if sparse.issparse(rows):
        rows.sum_duplicates()
    values, ends = _cells(rows)
    squares = np.empty(len(ends) - 1)
    _add_squares(values, ends, squares)
    return squares


def _cells(rows: Rows) -> tuple[Array, Array]:
    """The numbers of all rows in one array, without copying, and where each row begins."""
    if sparse.issparse(rows):
        return rows.data, rows.indptr
    return rows.reshape(-1), np.arange(rows.shape[0] + 1) * rows.shape[1]


@njit(cache=True, error_model="numpy")
def _add_squares(values: Array, ends: Array, out: Array) -> None:
    lanes = np.empty(_LANES)
    for i in range(len(out)):
        row = values[ends[i] : ends[i + 1]]
        lanes[:] = 0.0
        for first in range(0, len(row), _LANES):
            part = row[first : first + _LANES]
            for j in range(len(part)):
                lanes[j] += part[j] * part[j]
        out[i] = 0.0
        for j in range(_LANES):
            out[i] += lanes[j]


@njit(cache=True, error_model="numpy")
def _scale(values: Array, ends: Array, weights: Array) -> None:
    """Multiplies each row by its weight. A weight of 0 sets the row to zeros, because 0 x NaN would be NaN."""
    for i in range(len(weights)):
        for j in range(ends[i], ends[i + 1]):
            values[j] = weights[i] * values[j] if weights[i] > 0.0 else 0.0


def _finite(rows: Rows) -> tuple[Rows, int]:
    """The rows, with zeros in each row that holds a number that is not finite, and how many such rows there were."""
    if rows.dtype.kind != "f" or (whole := _holds_numbers(rows)).all():
        return rows, 0
    kept = sparse.csr_array(rows, copy=True) if sparse.issparse(rows) else np.array(rows, order="C")
    values, ends = _cells(kept)
    _scale(values, ends, whole.astype(np.float64))
    return kept, int((~whole).sum())


def _holds_numbers(rows: Rows) -> Array:
    """Whether every number of each row is finite. Sums would not show it, because finite numbers may have an infinite sum."""
    if not sparse.issparse(rows):
        return np.asarray(np.isfinite(rows).all(axis=1))
    table = sparse.csr_array(rows)
    holds = np.ones(table.shape[0], dtype=bool)
    holds[np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))[~np.isfinite(table.data)]] = False
    return holds


def _whole(rows: Rows) -> Rows:
    """The rows rounded towards zero. A larger number than can be summed becomes the largest one."""
    if rows.dtype.kind != "f":
        return rows.astype(np.int64)
    if sparse.issparse(rows):
        bounded = sparse.csr_array(rows, copy=True)
        bounded.data = np.clip(bounded.data, -_LARGEST, _LARGEST)
        return bounded.astype(np.int64)
    return np.clip(rows, -_LARGEST, _LARGEST).astype(np.int64)


def _sum(rows: Rows, dtype: Any) -> Array:
    if rows.shape[0] == 1 and not sparse.issparse(rows):  # a party's one long row: numpy's sum over a single row is slow
        return np.asarray(rows[0]).astype(dtype, copy=False)
    return np.asarray(rows.sum(axis=0)).ravel().astype(dtype, copy=False)
