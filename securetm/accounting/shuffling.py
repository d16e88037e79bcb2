"""A lower bound on what shuffled batches cost, where each unit is in one batch of an epoch. It is no promise."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from securetm.accounting.events import positive, probability, whole

_THRESHOLDS = 20_001


def least_epsilon_shuffled(batches_per_epoch: int, noise: float, delta: float) -> float:
    """No epsilon below this holds for one epoch of shuffled batches with this noise multiplier.

    The neighbours are those of Chua et al. 2024 (How private are DP-SGD implementations?): all other rows are opposite to the
    unit's, so that the sum of its batch stands 2 above all other sums where it is present and 1 above where its place is left
    empty; the event is that any sum passes a threshold. Each threshold gives a true bound; the best of a grid is taken.
    """
    batches, deviation = whole("batches per epoch", batches_per_epoch, least=1), positive("noise", noise)
    lost = probability("delta", delta)
    passing = np.linspace(-10 * deviation, 2 + 40 * deviation, _THRESHOLDS)
    others = (batches - 1) * special.log_ndtr(passing / deviation)
    with_unit = -np.expm1(others + special.log_ndtr((passing - 2) / deviation))
    without = -np.expm1(others + special.log_ndtr((passing - 1) / deviation))
    seen = (with_unit > lost) & (without > 0)
    return max(0.0, float(np.max(np.log(with_unit[seen] - lost) - np.log(without[seen]), initial=-math.inf)))
