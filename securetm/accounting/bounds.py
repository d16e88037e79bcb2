"""Every accountant as two functions: epsilon by delta, and delta by epsilon. Failure probabilities are not included."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from securetm.accounting.closed_forms import basic_epsilon, delta_of, epsilon_of, sensitivity_of
from securetm.accounting.losses import composed, interval_for, rounding_of, split
from securetm.accounting.renyi import ORDERS, curve_of, deltas_at, epsilons_at
from securetm.accounting.spends import Leaves
from securetm.data_classes import dataclass

PLD, RDP, PURE, BOTH = "PLD", "RDP", "pure", "PLD + RDP"
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of delta for the loss distribution, where both accountants are combined


@dataclass(frozen=True)
class Bound:
    """What one accountant proves: `epsilon(delta)` and `delta(epsilon)`, neither below the true value."""

    accountant: str
    epsilon: Callable[[float], float]
    delta: Callable[[float], float]


@lru_cache(maxsize=64)
def bounds_of(leaves: Leaves) -> tuple[Bound, ...]:
    """Every accountant that bounds all of these events, the fast ones first; distributions are composed when asked for."""
    found = [by_renyi(leaves)]
    if basic_epsilon(leaves) < math.inf:
        found.append(_by_sum(basic_epsilon(leaves)))
    with_one, without = split(leaves)
    if with_one and interval_for(with_one) < math.inf:
        losses = by_losses(with_one)
        found.append(by_both(losses, by_renyi(without)) if without else losses)
    return tuple(found)


def by_renyi(leaves: Leaves) -> Bound:
    """Renyi divergences at many orders; the smallest bound counts."""
    curve = curve_of(leaves)
    return Bound(
        RDP,
        lambda delta: float(epsilons_at(ORDERS, curve, delta).min()),
        lambda epsilon: float(deltas_at(ORDERS, curve, epsilon).min()),
    )


def _by_sum(pure: float) -> Bound:
    """Pure epsilons add up. At a smaller epsilon, delta is at most that of randomised response with their sum."""
    return Bound(PURE, lambda _: pure, lambda epsilon: max(0.0, -math.expm1(epsilon - pure) / (1 + math.exp(-pure))))


def by_losses(leaves: Leaves) -> Bound:
    """Composed privacy loss distributions; delta pays for rounding errors. Losses of Gaussians alone need no grid."""
    if mu := sensitivity_of(leaves):
        return Bound(PLD, lambda delta: epsilon_of(mu, delta), lambda epsilon: delta_of(mu, epsilon))
    interval, rounding = interval_for(leaves), rounding_of(leaves)

    def epsilon(delta: float) -> float:
        if delta <= rounding:
            return math.inf
        return float(composed(leaves, interval).get_epsilon_for_delta(delta - rounding))

    def delta(epsilon: float) -> float:
        return min(1.0, float(composed(leaves, interval).get_delta_for_epsilon(epsilon)) + rounding)

    return Bound(PLD, epsilon, delta)


def by_both(losses: Bound, renyi: Bound) -> Bound:
    """Some events by their losses, the others by their divergences. Epsilons add and deltas add, for any share of delta."""

    def epsilon(delta: float) -> float:
        return min(losses.epsilon(share * delta) + renyi.epsilon((1 - share) * delta) for share in _SHARES)

    def delta(epsilon: float) -> float:
        return min(1.0, *(losses.delta(share * epsilon) + renyi.delta((1 - share) * epsilon) for share in _SHARES))

    return Bound(BOTH, epsilon, delta)
