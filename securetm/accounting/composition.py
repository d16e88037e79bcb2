"""Composes spends: epsilon at a delta by every accountant that applies, and how much more fits a budget.

It keeps no record and knows no party. Neighbouring data sets differ by adding or removing one unit of one kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from securetm.accounting.bounds import PLD, PURE, RDP, Bound, bounds_of
from securetm.accounting.spends import Leaves, Spend, failure_probability_of, leaves_of, not_negative, probability, whole
from securetm.data_classes import dataclass

_STEP = 1e-6
_NEAR = 100.0  # the largest epsilon that so many rounds reach, each halving what is missing
_CLOSE = 1e-6  # of delta: many times what the arithmetic of both ways to ask a loss distribution differs by


@dataclass(frozen=True)
class Total:
    """All spends together are (epsilon, delta)-differentially private, as this accountant proves."""

    epsilon: float
    delta: float
    accountant: str


def total(spends: Sequence[Spend], delta: float) -> Total:
    """The least epsilon that any accountant proves at this delta."""
    return min(by_accountant(spends, delta), key=lambda bound: bound.epsilon)


def by_accountant(spends: Sequence[Spend], delta: float) -> list[Total]:
    """What each accountant proves at this delta, the least epsilon first; those that cannot bound these events are left out."""
    failure_probability, wanted = failure_probability_of(spends), probability("delta", delta)
    totals = [
        Total(with_failures(bound.epsilon, wanted, failure_probability), wanted, bound.accountant)
        for bound in bounds_of(leaves_of(spends))
    ]
    return sorted(totals, key=lambda found: (found.epsilon, found.accountant != PURE))


def quick_epsilon(spends: Sequence[Spend], delta: float) -> float:
    """The least epsilon of the fast accountants: never below `total`, and often near it."""
    quick = [bound for bound in bounds_of(leaves_of(spends)) if bound.accountant in (RDP, PURE)]
    return min(with_failures(bound.epsilon, delta, failure_probability_of(spends)) for bound in quick)


def failure_cost(failure_probability: float, epsilon: float) -> float:
    """What the failure probability takes from delta.

    An answer that differs from its event's with probability h is within h of it in total variation, and all together within
    their sum H, whatever was chosen adaptively. So for neighbours x, y: P'x(S) <= Px(S) + H <= e^eps Py(S) + delta + H
    <= e^eps (P'y(S) + H) + delta + H. No shape of the tails is assumed.
    """
    return 0.0 if failure_probability == 0 else failure_probability * (1 + math.exp(epsilon)) if epsilon < 700 else math.inf


def with_failures(epsilon_of: Callable[[float], float], delta: float, failure_probability: float) -> float:
    """An epsilon for which the failure cost leaves enough delta: the least fixed point, or a little above it."""
    if failure_probability == 0:
        return epsilon_of(delta)
    epsilon = found = 0.0
    for _ in range(200):
        for tried in (epsilon, epsilon * (1 + _STEP) + _STEP):  # a pure epsilon is a fixed point to the last bit
            left = delta - failure_cost(failure_probability, tried)
            found = epsilon_of(left) if left >= 0 else math.inf
            if found <= tried:
                return tried
        if found == math.inf:
            return math.inf
        epsilon = found
    return math.inf


def within(spends: Sequence[Spend], epsilon: float, delta: float) -> bool:
    """Whether `total` stays within this budget; fast accountants are asked first."""
    return _within(leaves_of(spends), failure_probability_of(spends), epsilon, delta)


def _within(leaves: Leaves, failure_probability: float, epsilon: float, delta: float) -> bool:
    return any(_holds(bound, failure_probability, epsilon, delta) for bound in bounds_of(leaves))


def _holds(bound: Bound, failure_probability: float, epsilon: float, delta: float) -> bool:
    """Whether this accountant proves the budget, and `with_failures` would say so.

    The delta of a loss distribution is one sum, and its epsilon a search that takes fifty times as long. So the search decides
    only where sums do not. `with_failures` may end a step above the least fixed point: what holds has to hold a step below.
    Delta is convex in e^epsilon, and the failure cost is a straight line in it. Where the cost fits twice, the line is at most
    half as steep as delta falls, so each round there halves what is missing, and the rounds suffice.
    """
    if bound.accountant == PLD:
        below = (epsilon - _STEP) / (1 + _STEP) if failure_probability else epsilon
        twice = 2 * failure_cost(failure_probability, epsilon)
        if 0 <= below <= _NEAR and bound.delta(below) + twice <= delta * (1 - _CLOSE):
            return True
        if bound.delta(epsilon) >= delta * (1 + _CLOSE):
            return False
    return with_failures(bound.epsilon, delta, failure_probability) <= epsilon


def affordable(before: Sequence[Spend], more: Spend, epsilon: float, delta: float, most: int, likely: int = 1) -> int:
    """How many answers like `more` fit on top of `before`, up to `most`. It tries the `likely` number first."""
    budget = not_negative("epsilon", epsilon), probability("delta", delta)
    one = Spend(more.event, more.failure_probability)
    return _affordable(
        leaves_of(before),
        failure_probability_of(before),
        leaves_of([one]),
        one.failure_probability,
        *budget,
        whole("most", most),
        max(1, likely),
    )


@lru_cache(maxsize=256)
def _affordable(
    before: Leaves, lost: float, more: Leaves, failure_probability: float, epsilon: float, delta: float, most: int, likely: int
) -> int:
    def fits(count: int) -> bool:
        added = tuple((event, times * count) for event, times in more)
        leaves = leaves_of([Spend(event, count=times) for event, times in (*before, *added)])
        return _within(leaves, lost + failure_probability * count, epsilon, delta)

    return largest(fits, most, likely)


def largest(fits: Callable[[int], bool], most: int, likely: int = 1) -> int:
    """The largest whole number up to `most` that fits, where all smaller ones fit, too; 0 where 1 does not fit.

    It tries the `likely` number first, and from there steps that double, because a count that is far too large takes the
    longest to try.
    """
    low, high, step = 0, min(likely, most), 1
    while high > low and fits(high):
        low, high, step = high, min(high + step, most), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
