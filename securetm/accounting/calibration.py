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
_STEEPEST = 30.0

Make = Callable[[float], Sequence[Spend]]


class BudgetTooSmall(Misuse):
    """no {what} stays within epsilon = {epsilon}: {reason}"""

    what: str
    epsilon: str  # with its unit
    reason: str
    instead: str
    hint = "{instead}"


def noise_for(make: Make, epsilon: float, delta: float, least: float, most: float) -> float:
    """The least noise between `least` and `most` whose spends stay within the budget, at most a thousandth too large."""
    least, most = positive("least noise", least), positive("largest noise", most)
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    if not within(make(most), epsilon, delta):
        noise, reason = f"noise between {least:g} and {most:g}", f"the largest spends more at delta = {upward_figure(delta)}"
        instead = "allow a larger epsilon, or take fewer rounds or smaller batches"
        raise BudgetTooSmall(noise, upward(epsilon), reason, instead)

    def quickly(place: float) -> float:
        """By the fast accountants; the others allow at least as much."""
        return _log_ratio(quick_epsilon(make(math.exp(place)), delta), epsilon)

    def excess(place: float) -> float:
        return _log_ratio(total(make(math.exp(place)), delta).epsilon, epsilon)

    place, end, stride = math.log(most), math.log(least), 0.1
    if quickly(end) <= 0:
        place = end
    elif quickly(place) <= 0:
        place = _edge(quickly, place, end)
    while place != end:  # in growing strides, as far as the budget allows
        beyond = end if abs(end - place) <= stride else place - stride
        if excess(beyond) > 0:
            return math.exp(_edge(excess, place, beyond))
        place, stride = beyond, 2 * stride
    return math.exp(end)


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
