"""Whole counts behind shares: what dividing every row by its sum hides of a table of counts, which is nothing.

Pure arithmetic on one row at a time. A row shows its counts up to a common factor; where no count is a multiple of another this
is settled by the smallest whole numbers that fit, or by the row's true sum, where it is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from securetm.contracts import Array

_MOST_TIMES = 4096  # the smallest count of a row is not larger
_FINER = 65  # steps of the second look, around what the first found
_SMALLEST = 128  # entries of a row in which the grid of its numbers is looked for
_FIRST, _NEARLY = 32, 0.2  # the least entries of a row, and how near to whole they must be for a closer look
_WIDTH, _AT_ONCE = 4096, 64  # of the table in which scales are looked through
_TOLERANCE = 0.02  # how far from a whole number a count may come out where nothing but rounding was added


@dataclass(frozen=True)
class IntegerRow:
    """One row as whole counts; `miss` is how far the worst of them was from a whole number before it was rounded."""

    counts: Array
    total: float
    miss: float


def counts_behind(shares: Array, eta: float = 0.0) -> IntegerRow | None:
    """The smallest whole counts n whose (n + eta) / sum(n + eta) are these shares; None where no whole counts fit.

    Without smoothing (eta = 0) the least share is a small whole number of parts of the sum. With it a word that never occurs
    has eta parts, which gives the sum at once.
    """
    row = np.asarray(shares, dtype=np.float64)
    if eta > 0.0:
        least = float(row.min(initial=np.inf))
        return _checked(row, eta / least if least > 0 else 0.0, eta)
    there = np.sort(row[row > 0])
    if not len(there) or row.min() < 0:
        return None
    times = np.arange(1, _MOST_TIMES + 1)
    first = np.outer(times / there[0], there[:_FIRST])  # if the least count were 1, 2, 3, ...: what the next ones would be
    near = (np.abs(first - np.rint(first)) < _NEARLY).all(axis=1)
    found = (_checked(row, count / there[0], 0.0) for count in times[near])
    return next((rebuilt for rebuilt in found if rebuilt is not None), None)


def _checked(row: Array, parts: float, eta: float) -> IntegerRow | None:
    """The counts if the whole is so many parts; the number of parts is settled by all entries, as the first guess is rough."""
    if not 0.0 < parts < 2.0**53:
        return None
    for _ in range(3):
        whole = np.rint(row * parts - eta)
        if not whole.any():
            return None
        parts = float(((whole + eta) * row).sum() / (row * row).sum())
    miss = float(np.abs(row * parts - eta - whole).max())
    return IntegerRow(np.maximum(whole, 0.0).astype(np.int64), parts, miss) if miss < _TOLERANCE else None


def scale_of(row: Array, least: float, most: float, steps_each: int = 4) -> tuple[float, float, float]:
    """By how much a noisy row must be multiplied for its entries to lie near whole numbers, and how near (1: all on them).

    Where they are whole their spectrum has a line: the mean of cos(2 pi scale x) is 1 for whole numbers, is
    1 / (1 + (2 pi b)^2) where Laplace noise of scale b was added to each (0.62 at b = 1/8, 0.02 at 1), and near 0 elsewhere:
    a periodogram, as for the period of a train of pulses. Empty entries say nothing and are left out. The third number is how
    high the line of numbers that lie anywhere would rise among so many scales, once in a thousand rows.
    """
    there = np.asarray(row, dtype=np.float64)
    there = there[there != 0]
    if len(there) < 2 or not 0 < least < most:
        return 0.0, 0.0, 1.0
    step = 1.0 / (steps_each * float(np.abs(there).max()))
    number = max(int((most - least) / step), 1)
    rough, _ = _line(least, step, number, there)
    fine, high = _line(rough - step, 2 * step / _FINER, _FINER + 1, there)
    return fine, high, float(np.sqrt((np.log(number) + np.log(1000)) / len(there)))


def sum_behind(shares: Array, grid: float, least: float, most: float) -> float | None:
    """The sum of a row of numbers on a grid, out of their shares of it; None where its line does not stand out.

    Noise that is continuous to the eye lies on a fine grid, and single precision keeps that of small numbers, so they have a
    scale like whole counts. Shares in single precision lie on a grid of their own, whose multiples are passed by.
    """
    small = np.sort(shares[shares > 0])[:_SMALLEST].astype(np.float64)
    if len(small) < _FIRST:
        return None
    own = 1.0 / (4.0 * float(np.spacing(np.float32(small[-1]))))
    guard = 3.0 / max(float(small.std()), 1.0 / own)
    walls = own * np.arange(np.floor(least / grid / own), np.ceil(most / grid / own) + 1)
    rooms = [(max(low + guard, least / grid), min(high - guard, most / grid)) for low, high in pairwise(walls)]
    found = [scale_of(small, low, high, 2) for low, high in rooms if low < high]
    scale, high, chance = max(found, key=lambda one: one[1] - one[2], default=(0.0, 0.0, 1.0))
    return scale * grid if high > chance else None


def _line(least: float, step: float, number: int, there: Array) -> tuple[float, float]:
    """The scale at which the spectrum is strongest, and how strong.

    A turn by so many steps is a turn by whole rows of steps and then by the rest, so a table of both is all that is turned.
    """
    width = min(number, _WIDTH)
    rest = _turns(step * np.arange(width), there).T
    best, high = least, -np.inf
    for begin in range(0, number, _AT_ONCE * width):
        firsts = np.arange(begin, min(begin + _AT_ONCE * width, number), width)
        rows = _turns(least + step * firsts, there)
        lines = rows.real @ rest.real - rows.imag @ rest.imag
        place = int(lines.argmax())
        if lines.flat[place] > high:
            high = float(lines.flat[place])
            best = least + step * float(firsts[place // width] + place % width)
    return best, high / len(there)


def _turns(scales: Array, there: Array) -> Array:
    """Where each entry stands on its circle at each scale; whole turns are taken off before precision is."""
    turns: Array = np.exp(2j * np.pi * (np.outer(scales, there) % 1.0)).astype(np.complex64)
    return turns
