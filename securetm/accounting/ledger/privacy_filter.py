"""When another answer still fits a ledger's budget: the rule for one run, and the one for many. It reads no file.

Within one run the profile fixes in advance what is asked, so that loss distributions compose it (`composition`). Whoever begins
another run has seen what the first one answered, and chooses accordingly. For that there is a Renyi filter (Feldman and Zrnic
2021, theorem 4.3): the divergences at one order, fixed before the first answer, are added up over all entries of all runs, and
what would take the sum above the budget is not admitted. One order fits one kind of noise only, and a bad one bills sampled
gradients a hundredfold; hence a few orders, fixed when the ledger is opened, and it is enough that one of them is kept.

Why all of this holds at once. Sort the transcripts of a ledger's whole life by the first rule that they keep: only one run ever
spends; order 1, order 2, ... is kept; the pure epsilons add up to no more than epsilon. Rule r has the share d_r of delta. Were
r asked alone, the ledger would give the same transcripts where r is kept, and refuse the same: sums only grow, so what keeps r
at its end kept it all along, and what this ledger refuses breaks every rule. A ledger that asks r alone is (epsilon, d_r)-
private: for r = one run by `composition`, because the transcript is a function of that run's answers; for an order by the
filter's theorem and the conversion of Canonne, Kamath and Steinke (2020); for pure epsilons with d_r = 0. So for any set S of
transcripts, and A_r those sorted under r, P(S and A_r) <= e^epsilon P'(S and A_r) + d_r; these lines add
up to (epsilon, sum of d_r).

Slack is the probability that an answer is not its event's. Its sum is held below a share of its own, so that the bound on it is
fixed in advance as the orders are; what it takes from delta is worked out at `composition.failure_cost`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from securetm.accounting.composition import failure_cost
from securetm.accounting.pure import basic_epsilon
from securetm.accounting.renyi import epsilons_at, renyi_curve
from securetm.accounting.spends import Spend, leaves_of
from securetm.contracts import Array, Budget

ALONE = 0.9  # of delta: only one run ever spends
AMONG = 0.05  # of delta: several runs, in equal parts for each order
FAILURE_SHARE = 0.05  # of delta: several runs, for answers that are not their event's
_BESIDE_GAUSSIAN = (0.6, 0.73, 0.87, 1.0)  # times the best order for unsampled noise; sampled noise is best at or below it
_LARGEST = 1024

Orders = tuple[int, ...]


@dataclass(frozen=True)
class Cost:
    """What some answers add to the sums of the filter."""

    divergences: tuple[float, ...]  # by order
    pure: float = 0.0
    failure_probability: float = 0.0

    def plus(self, other: Cost, times: int) -> Cost:
        """Both together, the other so many times."""
        divergences = tuple(mine + times * more for mine, more in zip(self.divergences, other.divergences, strict=True))
        return Cost(divergences, self.pure + times * other.pure, self.failure_probability + times * other.failure_probability)


def nothing(orders: Orders) -> Cost:
    """The cost of no answer."""
    return Cost((0.0,) * len(orders))


@lru_cache(maxsize=256)
def cost_of(kind: Spend, orders: Orders) -> Cost:
    """The cost of some equal answers."""
    divergences = renyi_curve([kind], np.array(orders, dtype=float))
    return Cost(tuple(map(float, divergences)), basic_epsilon(leaves_of([kind])), kind.failure_probability * kind.count)


def orders_for(budget: Budget) -> Orders:
    """The whole order at which most equal Gaussian answers pass, and some below it for sampled ones."""
    if budget.delta == 0:
        return (2,)  # no order helps: only pure epsilons pass
    orders = np.arange(2.0, _LARGEST + 1)
    delta = AMONG * budget.delta / len(_BESIDE_GAUSSIAN)
    rooms = budget.epsilon - np.log1p(-1 / orders) + (math.log(delta) + np.log(orders)) / (orders - 1)
    best = float(orders[np.argmax(rooms / orders)])
    return tuple(sorted({max(2, round(best * share)) for share in _BESIDE_GAUSSIAN}))


def filter_epsilon(cost: Cost, orders: Orders, budget: Budget) -> float:
    """What the filter says was spent; infinity where failure probability took more than its share of delta."""
    by_order: Array = epsilons_at(np.array(orders), np.array(cost.divergences), AMONG * budget.delta / len(orders))
    epsilon = min(float(by_order.min()), cost.pure)
    failure_probability = failure_cost(cost.failure_probability, max(epsilon, budget.epsilon))
    return epsilon if failure_probability <= FAILURE_SHARE * budget.delta else math.inf
