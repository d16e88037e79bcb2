"""The other way round: the least noise, the most answers, the largest rate that stay within a budget. It spends nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from securetm.accounting.composition import largest, within
from securetm.accounting.events import positive, probability, rate, whole
from securetm.accounting.spends import Spend
from securetm.errors import OutOfReach

PRECISION = 1e-3
Choice = TypeVar("Choice", int, float)


def noise_for(make: Callable[[float], Sequence[Spend]], epsilon: float, delta: float, low: float, high: float) -> float:
    """The least noise between `low` and `high` whose spends stay within the budget, at most a thousandth too large."""
    low, high = positive("least noise", low), positive("largest noise", high)
    if not _fits(make, high, epsilon, delta):
        raise OutOfReach("noise", low, high, epsilon, delta)
    if _fits(make, low, epsilon, delta):
        return low
    return _edge(lambda noise: _fits(make, noise, epsilon, delta), fits_at=high, fails_at=low)


def rate_for(make: Callable[[float], Sequence[Spend]], epsilon: float, delta: float, low: float, high: float = 1.0) -> float:
    """The largest sampling rate between `low` and `high` whose spends stay within the budget, at most a thousandth too small."""
    low, high = rate("least rate", low), rate("largest rate", high)
    if not _fits(make, low, epsilon, delta):
        raise OutOfReach("rate", low, high, epsilon, delta)
    if _fits(make, high, epsilon, delta):
        return high
    return _edge(lambda part: _fits(make, part, epsilon, delta), fits_at=low, fails_at=high)


def count_for(make: Callable[[int], Sequence[Spend]], epsilon: float, delta: float, most: int) -> int:
    """The most rounds, steps or epochs up to `most` whose spends stay within the budget; 0 where not even one does."""
    return largest(lambda count: _fits(make, count, epsilon, delta), whole("most", most))


def _fits(make: Callable[[Choice], Sequence[Spend]], choice: Choice, epsilon: float, delta: float) -> bool:
    return within(make(choice), epsilon, probability("delta", delta))


def _edge(fits: Callable[[float], bool], fits_at: float, fails_at: float) -> float:
    """Bisects the ratio; what is returned was tried and fits."""
    while abs(math.log(fits_at / fails_at)) > PRECISION:
        middle = math.sqrt(fits_at * fails_at)
        fits_at, fails_at = (middle, fails_at) if fits(middle) else (fits_at, middle)
    return fits_at
