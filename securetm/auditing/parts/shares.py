"""Whole counts behind shares of them, which dividing each row by its sum does not hide: exact, or behind noise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from securetm.contracts import Array, CountNoise, Profile

# ---- rational reconstruction ----------------------------------------------------------------------------------------
# Pure arithmetic on one row at a time. A row shows its counts up to a common factor. The smallest whole numbers that fit decide
# the factor, or the row's true sum, if it is known.

_MOST_TIMES = 4096  # the smallest count of a row is not larger
_FINER = 65  # steps of the finer search around the first result
_SMALLEST = 128  # entries of a row that are used to find the grid of its numbers
_FIRST, _NEARLY = 32, 0.2  # how many of the least entries must be whole, and how nearly, before all are checked
_WIDTH, _AT_ONCE = 4096, 64  # size of the table in the search of scales
_TOLERANCE = 0.02  # the largest distance of a count from a whole number by rounding alone


def counts_behind(shares: Array) -> Array | None:
    """The smallest whole counts with these shares of their sum; None if no whole counts fit.

    The least share is a small whole number of parts of the sum.
    """
    row = np.asarray(shares, dtype=np.float64)
    there = np.sort(row[row > 0])
    if not len(there) or row.min() < 0:
        return None
    times = np.arange(1, _MOST_TIMES + 1)
    first = np.outer(times / there[0], there[:_FIRST])  # the next counts, if the least is 1, 2, 3, ...
    near = (np.abs(first - np.rint(first)) < _NEARLY).all(axis=1)
    found = (_checked(row, count / there[0]) for count in times[near])
    return next((counts for counts in found if counts is not None), None)


def _checked(row: Array, parts: float) -> Array | None:
    """The counts if the sum has so many parts. All entries improve this number, since the first guess is rough."""
    if not 0.0 < parts < 2.0**53:
        return None
    for _ in range(3):
        whole = np.rint(row * parts)
        if not whole.any():
            return None
        parts = float((whole * row).sum() / (row * row).sum())
    fits = float(np.abs(row * parts - whole).max()) < _TOLERANCE
    return np.maximum(whole, 0.0).astype(np.int64) if fits else None


def scale_of(row: Array, least: float, most: float, steps_each: int = 4) -> tuple[float, float, float]:
    """The factor that makes the entries of a noisy row nearly whole, and how nearly (1: exactly).

    It is the highest line of a periodogram: the mean of cos(2 pi scale x) is 1 for whole numbers, 1 / (1 + (2 pi b)^2) if
    Laplace noise of scale b was added to each (0.62 at b = 1/8, 0.02 at 1), and near 0 at other scales. Zero entries are left
    out. The third number is the height that random numbers reach among so many scales in one of a thousand rows.
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
    """The sum of a row of numbers on a grid, from their shares of it; None if no scale is significant.

    Continuous noise is on a fine grid as well. Single precision keeps this grid for small numbers, so they have a scale, like
    whole counts. The shares in single precision have a grid of their own, whose multiples are skipped.
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
    """The scale with the highest line of the spectrum, and its height.

    A rotation by many steps is a product of two rotations from a table, so few rotations are computed.
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
    """The rotation of each entry at each scale. Whole turns are subtracted before precision is reduced."""
    turns: Array = np.exp(2j * np.pi * (np.outer(scales, there) % 1.0)).astype(np.complex64)
    return turns


# ---- a party's table, where noise was added to the words before they were counted (iFTM) ----------------------------

_LARGEST = 25.0  # the most that noise may add to a word of a topic: beyond it, single precision has lost the grid of the sums
_APART = (0.5, 2.0)  # the range in which a topic's size is searched, in parts of an equal share of the party's words


def noise_of(profile: Profile, words: int) -> CountNoise:
    """The noise in the words of documents, as the public profile says."""
    return next((noise for part in profile.mechanisms if (noise := part.count_noise(words)) is not None), CountNoise())


def table_behind(shares: Array, slots: float, noise: CountNoise) -> tuple[Array, Array]:
    """The table as it was counted, and without the noise's mean. A row that fits no counts stays empty.

    `slots` is the party's number of words, which it sends beside its table.
    """
    each = slots / max(len(shares), 1)
    counted = np.array([_row_behind(row, each, noise) for row in shares])
    inside = counted.sum(axis=1, keepdims=True) / (1.0 + shares.shape[1] * noise.mean)
    real: Array = np.maximum(np.rint(counted - inside * noise.mean), 0.0).astype(np.int64)
    return counted, real


def _row_behind(row: Array, each: float, noise: CountNoise) -> Array:
    """One row of the table. If continuous noise hides the row's sum, all topics are taken as equally large."""
    if noise.grid == 0.0:
        found = counts_behind(row)
        return np.zeros(row.shape) if found is None else found.astype(np.float64)
    likely = each * (1.0 + len(row) * noise.mean)
    fits = bool(np.isclose(row.sum(), 1.0, atol=1e-3)) and row.min() >= 0
    total = sum_behind(row, noise.grid, *(likely * part for part in _APART)) if fits and each * noise.mean < _LARGEST else None
    return row * (likely if total is None else total) if fits else np.zeros(row.shape)
