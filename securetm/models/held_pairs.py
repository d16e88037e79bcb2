"""One sparse row for each document: a 1, which of some words it holds, and which of some pairs of them. It adds nothing up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from securetm.contracts import Array


def rows_of_held(counts: Any, words: Array, pairs: Array) -> Any:
    """The rows of documents. Words are in order, and pairs in that of their first and then of their second word."""
    table = sparse.csr_array(counts)
    if not table.has_sorted_indices:
        table = table.sorted_indices()
    places = np.full(table.shape[1], -1, dtype=np.int64)
    places[words] = np.arange(len(words))
    seconds = places[pairs[:, 1]]
    begins = np.searchsorted(places[pairs[:, 0]], np.arange(len(words) + 1))
    facts = (table.indptr.astype(np.int64), table.indices, table.data != 0, places, begins, seconds)
    ends = np.zeros(table.shape[0] + 1, dtype=np.int64)
    _fill(*facts, ends, np.empty(0, dtype=np.int32))
    np.cumsum(ends, out=ends)
    columns = np.empty(ends[-1], dtype=np.int32)
    _fill(*facts, ends, columns)
    return sparse.csr_array((np.ones(len(columns), np.int64), columns, ends), (table.shape[0], 1 + len(words) + len(pairs)))


@njit(cache=True, nogil=True)
def _fill(
    starts: Array, words: Array, there: Array, places: Array, begins: Array, seconds: Array, ends: Array, columns: Array
) -> None:
    """Writes the columns of each row; where there is no room for any, only the number of them."""
    held, most = np.empty(len(begins), np.int64), len(begins) - 1
    for d in range(len(starts) - 1):
        count = 0
        for i in range(starts[d], starts[d + 1]):
            if there[i] and places[words[i]] >= 0:
                held[count] = places[words[i]]
                count += 1
        if len(columns) == 0:
            ends[d + 1] = 1 + count + _paired(held, count, begins, seconds, 0, 0, columns)
            continue
        at = ends[d]
        columns[at] = 0
        for i in range(count):
            columns[at + 1 + i] = 1 + held[i]
        _paired(held, count, begins, seconds, at + 1 + count, 1 + most, columns)


@njit(cache=True, nogil=True, inline="always")
def _paired(held: Array, count: int, begins: Array, seconds: Array, at: int, shift: int, columns: Array) -> int:
    """How many pairs these words make; both lists are in order, so each is read once for each word."""
    found = 0
    for i in range(count):
        j, pair = i + 1, begins[held[i]]
        while j < count and pair < begins[held[i] + 1]:
            if held[j] < seconds[pair]:
                j += 1
            elif held[j] > seconds[pair]:
                pair += 1
            else:
                if len(columns):
                    columns[at + found] = shift + pair
                found, j, pair = found + 1, j + 1, pair + 1
    return found
