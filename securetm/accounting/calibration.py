"""Finds the least noise that stays within a budget. It spends nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from securetm.accounting.composition import quick_epsilon, total, within
from securetm.accounting.spends import Spend, positive, probability
from securetm.errors import Misuse
from securetm.extras import later
from securetm.wording import upward, upward_figure

optimize = later("scipy.optimize")

PRECISION = 1e-3  # of the result, relative; it is rounded to the safe side
_STRIDE = 0.1
_STEEPEST = 30.0

Make = Callable[[float], Sequence[Spend]]


class BudgetTooSmall(Misuse):
    """no {what} stays within epsilon = {epsilon}: {reason}"""

    what: str
    epsilon: str  # with its unit
    reason: str
    instead: str
    hint = "{instead}"


def noise_for(make: Make, epsilon: float, delta: float, low: float, high: float) -> float:
    """The least noise between `low` and `high` whose spends stay within the budget, at most a thousandth too large."""
    low, high = positive("least noise", low), positive("largest noise", high)
    return _furthest(make, positive("epsilon", epsilon), probability("delta", delta), high, low)


def _furthest(make: Make, epsilon: float, delta: float, safe: float, wanted: float) -> float:
    """Goes from `safe` towards `wanted` as far as the budget allows; the result was composed and fits."""
    if not within(make(safe), epsilon, delta):
        noise, reason = f"noise between {wanted:g} and {safe:g}", f"the largest spends more at delta = {upward_figure(delta)}"
        instead = "allow a larger epsilon, or take fewer rounds or smaller batches"
        raise BudgetTooSmall(noise, upward(epsilon), reason, instead)

    def excess(place: float) -> float:
        return _log_ratio(total(make(math.exp(place)), delta).epsilon, epsilon)

    start, end = _rough_edge(make, epsilon, delta, math.log(safe), math.log(wanted)), math.log(wanted)
    start, beyond = _stride(excess, start, end)
    return math.exp(beyond if start == end else _edge(excess, start, beyond))


def _rough_edge(make: Make, epsilon: float, delta: float, safe: float, wanted: float) -> float:
    """The furthest place that the fast accountants allow; the others allow at least as much."""

    def excess(place: float) -> float:
        return _log_ratio(quick_epsilon(make(math.exp(place)), delta), epsilon)

    if excess(wanted) <= 0:
        return wanted
    return _edge(excess, safe, wanted) if excess(safe) <= 0 else safe


def _stride(excess: Callable[[float], float], start: float, end: float) -> tuple[float, float]:
    """The last place that fits and the first that does not, a stride apart; the end twice if the end fits."""
    stride = math.copysign(_STRIDE, end - start)
    while start != end:
        beyond = end if abs(end - start) <= abs(stride) else start + stride
        if excess(beyond) > 0:
            return start, beyond
        start, stride = beyond, 2 * stride
    return end, end


def _edge(excess: Callable[[float], float], fits: float, fails: float) -> float:
    """Finds the edge by Brent's method, and steps back to a place that fits."""
    root = optimize.brentq(excess, fits, fails, xtol=PRECISION / 8)
    back = math.copysign(PRECISION / 4, fits - fails)
    place = root
    while excess(place) > 0:
        place, back = place + back, 2 * back
        if (place - fits) * (fits - fails) >= 0:
            return fits
    return float(place)


def _log_ratio(found: float, epsilon: float) -> float:
    """The logarithm of epsilon over the budget. Privacy curves are nearly straight in it; it is finite for the search."""
    if found <= 0:
        return -_STEEPEST
    return min(math.log(found / epsilon), _STEEPEST) if found < math.inf else _STEEPEST
