"""Alias tables: a draw from any discrete distribution in constant time (Walker 1977, built as in Vose 1991).

A cell of a table is one double. Its upper bits are the probability of the cell's own outcome. Its lower 16 bits are the number
of the other outcome, which has the rest. So a draw reads one place in memory, and probabilities are exact to 36 bits. This file
draws no random number: the caller gives it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.gibbs.draws import CountTable, on_ranges

OTHER = np.uint64(0xFFFF)  # the bits of a cell that hold the number of its other outcome


class Proposals(NamedTuple):
    """The alias tables of one round, and the same memory as whole numbers: of each word's topics, and of alpha."""

    of_words: Array  # by (count + eta) x scale
    word_bits: Array
    of_alpha: Array
    alpha_bits: Array
    scale: Array  # of each topic: one over its smoothed total


def proposals_of(table: CountTable, threads: int) -> Proposals:
    """This round's alias tables."""
    scale = 1.0 / (table.totals + table.words * table.eta)
    of_words, sums = np.empty((table.words, table.topics)), np.empty(table.words)
    bits = of_words.view(np.uint64)
    on_ranges(np.arange(table.words + 1), threads, build, table.by_word, scale, bits, sums)
    of_alpha = tables_of(table.alpha[None])[0][0]
    return Proposals(of_words, bits, of_alpha, of_alpha.view(np.uint64), scale)


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
            tables[row, z] = (whole[0] & ~OTHER) | np.uint64(other[z])


@njit(cache=True, nogil=True, inline="always")
def _share_out(cut: Array, scale: float, other: Array, few: Array, many: Array) -> None:
    """Fills cells below 1 from cells above 1, until no cell is above 1; `other` says from which."""
    below, above = 0, 0
    for z in range(len(cut)):
        cut[z] *= scale
        other[z] = z
        if cut[z] < 1.0:
            few[below] = z
            below += 1
        else:
            many[above] = z
            above += 1
    while below > 0 and above > 0:
        below -= 1
        giver = many[above - 1]
        other[few[below]] = giver
        cut[giver] = (cut[giver] + cut[few[below]]) - 1.0
        if cut[giver] < 1.0:
            above -= 1
            few[below] = giver
            below += 1
    for left in range(below):  # rounding left these
        cut[few[left]] = 1.0
    for left in range(above):
        cut[many[left]] = 1.0


@njit(cache=True, nogil=True, inline="always")
def draw(table: Array, bits: Array, chance: float) -> int:
    """An outcome of one row's table for a uniform number; `bits` is the same memory as whole numbers."""
    at = chance * len(table)
    cell = min(int(at), len(table) - 1)
    if at - cell < table[cell]:
        return cell
    return np.int64(bits[cell] & OTHER)  # type: ignore[return-value]  # numba would not unite it with an unsigned number
