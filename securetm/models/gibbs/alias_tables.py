"""Alias tables: a draw from any discrete distribution in constant time (Walker 1977, built as in Vose 1991). No chance here.

A cell of a table is one double: its upper bits are the share of the cell that is its own, its lower 16 bits the number of the
other outcome that has the rest. So a draw reads one place in memory, and shares are right to 36 bits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from securetm.contracts import Array

_OTHER = np.uint64(0xFFFF)


def tables_of(weights: Array) -> tuple[Array, Array]:
    """One table per row of weights, which are not negative and not all zero, and each row's sum."""
    tables, sums = np.empty(weights.shape), np.empty(len(weights))
    build(0, len(weights), weights, np.ones(weights.shape[1]), tables.view(np.uint64), sums)
    return tables, sums


@njit(cache=True, nogil=True)
def build(first: int, last: int, weights: Array, scale: Array, tables: Array, sums: Array) -> None:
    """Tables of rows `first` to `last` of weights x scale into `tables` (the doubles' bits), and the rows' sums."""
    k = weights.shape[1]
    bits, cut = np.empty(1, dtype=np.float64), np.empty(k)
    whole = bits.view(np.uint64)
    few, many, other = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    for row in range(first, last):
        sums[row] = 0.0
        for z in range(k):
            cut[z] = weights[row, z] * scale[z]
            sums[row] += cut[z]
        _share_out(cut, k / sums[row], other, few, many)
        for z in range(k):
            bits[0] = cut[z]
            tables[row, z] = (whole[0] & ~_OTHER) | np.uint64(other[z])


@njit(cache=True, nogil=True, inline="always")
def _share_out(cut: Array, scale: float, other: Array, few: Array, many: Array) -> None:
    """Cells that have less than their room are filled up from cells that have more, until none has more."""
    poor, rich = 0, 0
    for z in range(len(cut)):
        cut[z] *= scale
        other[z] = z
        if cut[z] < 1.0:
            few[poor] = z
            poor += 1
        else:
            many[rich] = z
            rich += 1
    while poor > 0 and rich > 0:
        poor -= 1
        giver = many[rich - 1]
        other[few[poor]] = giver
        cut[giver] = (cut[giver] + cut[few[poor]]) - 1.0
        if cut[giver] < 1.0:
            rich -= 1
            few[poor] = giver
            poor += 1
    for left in range(poor):  # what rounding left over
        cut[few[left]] = 1.0
    for left in range(rich):
        cut[many[left]] = 1.0


@njit(cache=True, nogil=True, inline="always")
def draw(table: Array, bits: Array, chance: float) -> int:
    """An outcome of one row's table for a uniform number; `bits` is the same memory as whole numbers."""
    at = chance * len(table)
    cell = min(int(at), len(table) - 1)
    if at - cell < table[cell]:
        return cell
    return np.int64(bits[cell] & _OTHER)  # type: ignore[return-value]  # numba would not unite it with an unsigned number


def shares_of(tables: Array) -> Array:
    """Back to probabilities: what each outcome has of all cells together. For tests, and for whoever wants to look."""
    bits = tables.view(np.uint64)
    own = np.minimum((bits & ~_OTHER).view(np.float64), 1.0)
    shares = own.copy()
    rows = np.repeat(np.arange(len(tables)), tables.shape[1])
    np.add.at(shares, (rows, (bits & _OTHER).astype(np.int64).ravel()), (1.0 - own).ravel())
    found: Array = shares / tables.shape[1]
    return found
