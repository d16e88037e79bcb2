"""What an epsilon allows an attacker: the largest true-positive rate at a false-positive rate. It runs no attack."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from securetm.accounting.bounds import Bound, bounds_of
from securetm.accounting.composition import failure_cost
from securetm.accounting.spends import Spend, failure_probability_of, leaves_of, rate

_COARSE = 40
_WIDEST = 60.0  # the largest epsilon tried; a larger one bounds no rate


def best_true_positive_rate(spends: Sequence[Spend], false_positives: float = 0.01) -> float:
    wrong, failure_probability = rate("false positives", false_positives), failure_probability_of(spends)
    return min(_best(bound, failure_probability, wrong) for bound in bounds_of(leaves_of(spends)))


def _best(bound: Bound, failure_probability: float, wrong: float) -> float:
    def most(epsilon: float) -> float:
        return true_positives(wrong, epsilon, bound.delta(epsilon) + failure_cost(failure_probability, epsilon))

    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, _WIDEST, _COARSE)])
    found = [most(float(epsilon)) for epsilon in epsilons]
    least = int(np.argmin(found))
    low, high, known = epsilons[max(least - 1, 0)], epsilons[min(least + 1, _COARSE)], found[least]
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(24):  # a golden-section search; each point is a valid bound, so it need not find the least one
        left, right = high - golden * (high - low), low + golden * (high - low)
        at_left, at_right = most(left), most(right)
        known = min(known, at_left, at_right)
        low, high = (low, right) if at_left <= at_right else (left, high)
    return known


def true_positives(wrong: float, epsilon: float, delta: float) -> float:
    """The most true positives under (epsilon, delta), in both directions (Kairouz, Oh and Viswanath 2015)."""
    return max(wrong, min(1.0, math.exp(epsilon) * wrong + delta, 1 - math.exp(-epsilon) * (1 - wrong - delta)))
