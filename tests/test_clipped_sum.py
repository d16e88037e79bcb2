"""Gradients of losses are bounded as rows are, whatever a model says of their lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from securetm.answers.clipped_sum import ClippedRowSum
from securetm.contracts import Array, Block, Terms
from securetm.errors import SplitOwner

TERMS = Terms((Block("all", (1,)),))
NOTHING_BESIDE = np.zeros((1, 0))


@dataclass
class OneRow:
    """The loss of one document, with one coordinate."""

    row: float
    length: float

    @property
    def values(self) -> Array:
        return np.zeros(1)

    def norms(self, owners: Array) -> Array:
        return np.array([self.length])

    def gradient(self, weights: Array) -> Array:
        return weights * np.array([self.row])


def summed(losses: OneRow) -> ClippedRowSum:
    found = ClippedRowSum(TERMS, radius=1.0)
    found.add_losses(losses, np.arange(1), NOTHING_BESIDE)
    return found


def test_the_radius_holds_where_a_length_is_found_a_little_too_short() -> None:
    assert abs(summed(OneRow(3.0, 3.0 * (1 - 2.0**-37))).vector()[0]) <= 1.0


@pytest.mark.parametrize("length", [np.nan, np.inf])
def test_a_gradient_of_no_length_counts_as_nothing(length: float) -> None:
    found = summed(OneRow(3.0, length))
    assert (found.vector().tolist(), found.lost) == ([0.0], 1)


def test_an_owner_s_gradients_come_at_once() -> None:
    found = summed(OneRow(3.0, 3.0))
    with pytest.raises(SplitOwner):
        found.add_losses(OneRow(3.0, 3.0), np.arange(1), NOTHING_BESIDE)
