"""Sums less what is known of them: a total without the answers that somebody can subtract, or two totals one party apart.

Pure arithmetic on vectors that were read already. It opens no message and asks no party.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from securetm.contracts import Array
from securetm.leakage.reading import ReadVector

_ROUNDINGS = 16.0  # of a floating-point sum of a few vectors, at most, each by half a last place


def without(total: ReadVector, known: Sequence[ReadVector], party: str = "") -> ReadVector:
    """What is left of a total after these answers of the same round are taken off: exact on a grid, else but for roundings."""
    left = {name: _left(block, [one.blocks[name] for one in known], total.round.step) for name, block in total.blocks.items()}
    return ReadVector(total.round, party, left)


def _left(block: Array, known: Sequence[Array], grid: float) -> Array:
    """Where nothing but roundings can be left, nothing is left: a word that nobody used has a row of zeros."""
    if grid:
        whole: Array = np.rint(block / grid) - sum((np.rint(one / grid) for one in known), np.zeros(block.shape))
        return np.asarray(whole * grid)
    left = block.astype(np.float64) - sum((one.astype(np.float64) for one in known), np.zeros(block.shape))
    size = np.abs(block) + sum((np.abs(one) for one in known), np.zeros(block.shape))
    exact = np.finfo(block.dtype).eps if block.dtype.kind == "f" else 0.0
    return np.asarray(np.where(np.abs(left) > _ROUNDINGS * exact * size, left, 0.0))


def apart(whole: ReadVector, rest: ReadVector, parties: int, party: str) -> ReadVector:
    """The difference of two totals over the same question: `rest` has one party less than the `parties` of `whole`.

    Each sum may lie on a grid of its own, and each of its vectors was rounded to that by half a step at most.
    """
    unsure = (parties * whole.round.step + (parties - 1) * rest.round.step) / 2.0
    left = {name: _beyond(_left(block, [rest.blocks[name]], 0.0), unsure) for name, block in whole.blocks.items()}
    rough = replace(whole.round.terms, grid=2.0 * unsure)
    return ReadVector(replace(whole.round, terms=rough), party, left)


def _beyond(values: Array, unsure: float) -> Array:
    return np.where(np.abs(values) > unsure, values, 0.0)
