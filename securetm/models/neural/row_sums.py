"""Sums over one long row, in an order that depends on the row's length alone."""

from __future__ import annotations

from typing import Any

from numba import njit

from securetm.contracts import Array

LANES = 256  # sums side by side over a long row: a compiler does not vectorise a single sum


@njit(cache=True, error_model="numpy")
def folded(lanes: Array) -> Any:
    """The sum of the lanes, by adding one half to the other; their number is a power of two."""
    width = len(lanes) // 2
    while width > 0:
        for j in range(width):
            lanes[j] += lanes[j + width]
        width //= 2
    return lanes[0]


@njit(cache=True, error_model="numpy")
def row_sum(row: Array, lanes: Array) -> Any:
    """The sum of a row."""
    lanes[:] = 0
    for first in range(0, len(row), len(lanes)):
        part = row[first : first + len(lanes)]
        for j in range(len(part)):
            lanes[j] += part[j]
    return folded(lanes)


@njit(cache=True, error_model="numpy")
def sum_of_squares(row: Array, level: Any, lanes: Array) -> Any:
    """The sum of (row - level)^2."""
    lanes[:] = 0
    for first in range(0, len(row), len(lanes)):
        part = row[first : first + len(lanes)]
        for j in range(len(part)):
            lanes[j] += (part[j] - level) * (part[j] - level)
    return folded(lanes)


@njit(cache=True, error_model="numpy")
def sum_of_products(one: Array, two: Array, level: Any, lanes: Array) -> Any:
    """The sum of one * (two - level)."""
    lanes[:] = 0
    for first in range(0, len(one), len(lanes)):
        left, right = one[first : first + len(lanes)], two[first : first + len(lanes)]
        for j in range(len(left)):
            lanes[j] += left[j] * (right[j] - level)
    return folded(lanes)


@njit(cache=True, error_model="numpy")
def highest(row: Array, lanes: Array) -> Any:
    """The largest value. Of a row with a NaN it may be any value, but then the row's mean is NaN."""
    lanes[:] = row[0]
    for first in range(0, len(row), len(lanes)):
        part = row[first : first + len(lanes)]
        for j in range(len(part)):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    highest = lanes[0]
    for j in range(len(lanes)):
        highest = lanes[j] if lanes[j] > highest else highest
    return highest
