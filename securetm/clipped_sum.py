"""The counter behind the one door: rows of documents go in, one bounded sum comes out. It draws no noise.

Whoever holds documents runs it: a party in a federation, or `fit` on one machine. What a clip makes of a row depends on that
row alone, to the last bit: lengths are summed in an order that is written here. Clipped rows are summed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from securetm.contracts import INF, Array, Domain, Losses, Rows, Terms, Unit
from securetm.errors import BrokenPromise, NoPersons, SplitOwner

# Rows are summed in 64 bits, and lengths are found from rounded factors. So the clip aims this much below its radius: more
# than a length of `Losses` may be short of, and the radius holds for what is really summed.
_ROUNDING = 2.0**-36
_LANES = 64  # squares summed side by side
_NUMBERS = 1 << 62  # of words that only a party knows
_LARGEST = 2.0**52  # of a whole number in a row: beyond 2^53 a float64 skips some


def _unchanged(rows: Any) -> Any:
    return rows


class ClippedRowSum:
    """Sums rows by their terms. Each owner's row is clipped to `radius`, an owner being a document, person or party.

    What is not finite counts as nothing: the owner's whole row, or a coordinate of a sum that no number holds any more.
    """

    def __init__(
        self,
        terms: Terms,
        radius: float = INF,
        on_rows: Callable[[Rows], Rows] = _unchanged,
        on_named: Callable[[Array], Array] = _unchanged,
        persons: Array | None = None,
    ) -> None:
        self.terms = terms
        self.radius = radius
        self._on_named = on_named
        self._persons = persons  # whose each document is, where rows are per person
        self.loss = 0.0  # this party's own figures, for its own store only: mean loss of the rows added,
        self.lost = 0  # and how many rows and coordinates were not finite
        self._on_rows = on_rows
        narrow = terms.bits == 32 and radius == INF  # what is clipped is counted on, so its sum is in 64 bits
        self._whole = np.int64 if terms.domain is Domain.INTEGER else np.float32 if narrow else np.float64
        self._vector: Array = np.zeros(0 if terms.ragged else terms.size, dtype=self._whole)
        self._ragged: list[Array] = []
        self._met: Array = np.zeros(0, dtype=np.int64)

    def add(self, rows: Rows, owners: Array) -> None:
        """Pours in one row per item; rows with the same owner are summed, then bounded together."""
        if self.terms.ragged:
            self._ragged.append(np.asarray(rows))
            return
        self._check_rows(rows, owners)
        if self.terms.names_words:  # what `named` let through is bounded already; all of it may be said
            self._vector += _sum(rows, self._vector.dtype)
            return
        owners = self._owners(owners)
        self._meet(owners)
        owned = clipped(self._finite(self._on_rows(joined(rows, owners))), self.radius)
        if self.terms.domain is Domain.INTEGER:  # each row towards zero, never the sum: one row must not tip many coordinates
            owned = _whole(owned)
        self._vector += _sum(owned, self._vector.dtype)

    def add_losses(self, losses: Losses, owners: Array, beside: Array) -> None:
        """Pours in gradients of one loss per document; `beside` holds each row's other coordinates."""
        if len(owners) == 0:
            return
        owners = self._owners(owners)
        self._meet(owners)
        weights = self._weights(losses, owners, beside)
        gradient = losses.gradient(weights)
        if self.radius == INF and not np.isfinite(gradient).all():  # lengths take time, so they are asked for only now
            weights = np.isfinite(self._lengths(losses, owners, beside)).astype(weights.dtype)
            self.lost += int((weights == 0).sum())
            gradient = losses.gradient(weights)
        if len(gradient) + beside.shape[1] != len(self._vector):
            raise BrokenPromise("gradient", len(gradient) + beside.shape[1], len(self._vector))
        if len(self._met) == len(owners):  # nothing stands there yet, and what was never written need not be read
            self._vector[: len(gradient)] = gradient
        else:
            self._vector[: len(gradient)] += gradient
        self._vector[len(gradient) :] += weights @ beside
        with np.errstate(over="ignore", invalid="ignore"):  # losses may be infinite; nobody else sees them
            self.loss = float(np.mean(losses.values[weights > 0])) if weights.any() else INF

    def named(self, rows: Rows, owners: Array, numbers: Array) -> Array:
        """The sums of bounded rows over words that only this party knows; 0 for a word that must not be named.

        `numbers` are the words' own, below 2^62, whatever words stand beside them. A bound that went by columns would keep
        other words of every document as soon as one document more brings a new word, which moves all columns after it.
        """
        owners = self._owners(owners)
        self._meet(owners)
        known, first = np.unique(numbers, return_index=True)
        poured = sparse.csr_array(joined(rows, owners))
        bounded = sparse.csr_array(self._on_rows(_over(poured, numbers[poured.indices], _NUMBERS)))
        sums = np.zeros(len(numbers), dtype=np.int64)  # of two words with one number only the first may be named
        sums[first] = _sum(_over(bounded, np.searchsorted(known, bounded.indices), len(known)), np.int64)
        return self._on_named(sums)

    def vector(self) -> Array:
        """The flat sum of all rows added so far, or the ragged rows as they are. It is finite whatever was added."""
        if not self.terms.ragged:
            whole = self._vector
        elif self._ragged:
            whole = np.concatenate(self._ragged)
        else:
            whole = np.zeros((0, *self.terms.layout[0].shape[1:]), self._whole)
        if whole.dtype.kind != "f" or (finite := np.isfinite(whole)).all():
            return whole
        self.lost += int((~finite).sum())
        return np.where(finite, whole, whole.dtype.type(0))

    def blocks(self) -> Mapping[str, Array]:
        """The sum, block by block."""
        return blocks_of(self.vector(), self.terms)

    def _check_rows(self, rows: Rows, owners: Array) -> None:
        if rows.ndim != 2 or rows.shape[1] != self.terms.size:
            raise BrokenPromise("row", rows.shape[-1], self.terms.size)
        if rows.shape[0] != len(owners):
            raise BrokenPromise("list of owners", len(owners), rows.shape[0])

    def _owners(self, owners: Array) -> Array:
        """Whose the rows are: a person's where persons are protected, else as the question says."""
        if self.terms.unit is not Unit.PERSON:
            return owners
        if self._persons is None:
            raise NoPersons()
        people: Array = self._persons[owners]
        return people

    def _meet(self, owners: Array) -> None:
        """Each owner comes once: what came earlier was bounded by itself, and two bounded rows exceed the bound."""
        if len(self._met) and np.isin(owners, self._met).any():
            raise SplitOwner()
        self._met = np.concatenate([self._met, owners])

    def _weights(self, losses: Losses, owners: Array, beside: Array) -> Array:
        """How far each document's row is shrunk, so that its owner's whole row stays within the radius.

        A row whose length is not finite gets no weight at all: what diverged must not be told from what was never there.
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
        """For each document how long its owner's whole row is."""
        _, member = np.unique(owners, return_inverse=True)
        others = np.zeros((int(member.max()) + 1, beside.shape[1]))
        np.add.at(others, member, beside)
        with np.errstate(over="ignore", invalid="ignore"):
            lengths: Array = np.sqrt(losses.norms(owners) ** 2 + _squared_lengths(others))
        return lengths[member]

    def _finite(self, rows: Rows) -> Rows:
        """The rows with every one that holds a number that is not finite emptied."""
        if rows.dtype.kind != "f":
            return rows
        kept, emptied = _finite(rows)
        self.lost += emptied
        return kept


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
    """Each row scaled to the radius, in 64 bits; a row that is not finite counts as one that was never there."""
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
    """Of each row, summed in an order that depends on its own length alone."""
    if sparse.issparse(rows):
        rows.sum_duplicates()
    values, ends = _cells(rows)
    squares = np.empty(len(ends) - 1)
    _add_squares(values, ends, squares)
    return squares


def _cells(rows: Rows) -> tuple[Array, Array]:
    """The numbers of all rows end to end, without copying, and where each row begins."""
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
    """A weight of 0 empties its row, whatever it holds: 0 x NaN is NaN."""
    for i in range(len(weights)):
        for j in range(ends[i], ends[i + 1]):
            values[j] = weights[i] * values[j] if weights[i] > 0.0 else 0.0


def _finite(rows: Rows) -> tuple[Rows, int]:
    """The rows with every one that holds a number that is not finite emptied: weights cannot do it, 0 x NaN is NaN.

    And how many these were.
    """
    whole = _holds_numbers(rows)
    if whole.all():
        return rows, 0
    kept = sparse.csr_array(rows, copy=True) if sparse.issparse(rows) else np.array(rows, order="C")
    values, ends = _cells(kept)
    _scale(values, ends, whole.astype(np.float64))
    return kept, int((~whole).sum())


def _holds_numbers(rows: Rows) -> Array:
    """Of each row whether every number in it is finite; a sum of finite ones may be none, so single entries are looked at."""
    if not sparse.issparse(rows):
        return np.asarray(np.isfinite(rows).all(axis=1))
    table = sparse.csr_array(rows)
    holds = np.ones(table.shape[0], dtype=bool)
    holds[np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))[~np.isfinite(table.data)]] = False
    return holds


def _whole(rows: Rows) -> Rows:
    """Whole numbers, towards zero; as large as ever can be summed, where a row holds more."""
    if rows.dtype.kind != "f":
        return rows.astype(np.int64)
    if sparse.issparse(rows):
        bounded = sparse.csr_array(rows, copy=True)
        bounded.data = np.clip(bounded.data, -_LARGEST, _LARGEST)
        return bounded.astype(np.int64)
    return np.clip(rows, -_LARGEST, _LARGEST).astype(np.int64)


def _sum(rows: Rows, dtype: Any) -> Array:
    return np.asarray(rows.sum(axis=0)).ravel().astype(dtype, copy=False)
