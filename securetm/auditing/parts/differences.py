"""Differences of sums: a total without known answers, or two totals that differ in one party. Pure arithmetic on vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from securetm.auditing.reading import ReadVector
from securetm.contracts import Array

_ROUNDINGS = 16.0  # at most in a floating-point sum of a few vectors, each of half a last place


def without(total: ReadVector, known: Sequence[ReadVector]) -> ReadVector:
    """The total minus these answers of the same round: exact on a grid, else up to rounding."""
    grid = total.round.terms.grid
    left = {name: _left(block, [one.blocks[name] for one in known], grid) for name, block in total.blocks.items()}
    return replace(total, blocks=left)


def _left(block: Array, known: Sequence[Array], grid: float) -> Array:
    """The difference. A rest that rounding alone explains is set to 0, so a word that no party used has a row of zeros."""
    if grid:
        whole: Array = np.rint(block / grid) - sum((np.rint(one / grid) for one in known), np.zeros(block.shape))
        return np.asarray(whole * grid)
    left = block.astype(np.float64) - sum((one.astype(np.float64) for one in known), np.zeros(block.shape))
    size = np.abs(block) + sum((np.abs(one) for one in known), np.zeros(block.shape))
    exact = np.finfo(block.dtype).eps if block.dtype.kind == "f" else 0.0
    return np.asarray(np.where(np.abs(left) > _ROUNDINGS * exact * size, left, 0.0))


def apart(whole: ReadVector, rest: ReadVector, parties: int, party: str) -> ReadVector:
    """The difference of two totals of the same question. `whole` has so many parties, `rest` one less.

    Each sum may have a grid of its own. Each of its vectors was rounded by half a step at most.
    """
    unsure = (parties * whole.round.terms.grid + (parties - 1) * rest.round.terms.grid) / 2.0
    exact = {name: _left(block, [rest.blocks[name]], 0.0) for name, block in whole.blocks.items()}
    left = {name: np.where(np.abs(values) > unsure, values, 0.0) for name, values in exact.items()}
    rough = replace(whole.round.terms, grid=2.0 * unsure)
    return ReadVector(replace(whole.round, terms=rough), party, left)
