"""The rule for what fits a ledger's budget: one rule for a single run, and one for several runs. It reads no file.

A profile fixes before a run what the run asks, so loss distributions compose the answers of one run (`composition`). A second
run may be chosen by what the first one answered. A Renyi filter covers such adaptive choices (Feldman and Zrnic 2021, theorem
4.3): at an order that is fixed before the first answer, the divergences of all entries of all runs are added up, and an answer
that would take the sum above the budget is refused. One order fits one kind of noise only, and an unsuitable order charges
sampled gradients a hundredfold. So a ledger fixes a few orders when it is opened, and it is enough that one of them is kept.

The rules hold together, by a union bound over delta. Sort all possible transcripts of a ledger by the first rule that they
keep: only one run ever spends; order 1, order 2, ... is kept; the pure epsilons add up to at most epsilon. Rule r has the share
d_r of delta. Consider a ledger that checks rule r alone. Where rule r is kept at the end, it was kept at every entry, because
sums only grow; and the real ledger refuses only what breaks every rule. So both ledgers give the same transcripts where r is
kept. The ledger that checks r alone is (epsilon, d_r)-private: for a single run by `composition`, because the transcript is a
function of that run's answers; for an order by the filter's theorem and the conversion of Canonne, Kamath and Steinke (2020);
for pure epsilons with d_r = 0. For any set S of transcripts, and A_r those sorted under r, it follows that
P(S and A_r) <= e^epsilon P'(S and A_r) + d_r. Added over r, this gives (epsilon, sum of d_r).

A failure probability is the probability that an answer is not its event's. Their sum is kept below a share of delta of its own,
so that its bound is fixed in advance, as the orders are. `composition.failure_cost` says what it takes from delta.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from securetm.accounting.closed_forms import basic_epsilon
from securetm.accounting.composition import failure_cost
from securetm.accounting.renyi import epsilons_at, renyi_curve
from securetm.accounting.spends import Spend, leaves_of
from securetm.contracts import Array, Budget
from securetm.data_classes import dataclass

ALONE = 0.9  # share of delta for the rule that only one run ever spends
AMONG = 0.05  # share of delta for several runs, in equal parts for each order
FAILURE_SHARE = 0.05  # share of delta for several runs' failure probabilities
_BESIDE_GAUSSIAN = (
    0.6,
    0.73,
    0.87,
    1.0,
)  # times the best order for unsampled noise; the best for sampled noise is not above it

Orders = tuple[int, ...]


@dataclass(frozen=True)
class Cost:
    """What some answers add to the sums that the filter keeps."""

    divergences: tuple[float, ...]  # by order
    pure: float = 0.0
    failure_probability: float = 0.0

    def plus(self, other: Cost, times: int) -> Cost:
        divergences = tuple(mine + times * more for mine, more in zip(self.divergences, other.divergences, strict=True))
        return Cost(divergences, self.pure + times * other.pure, self.failure_probability + times * other.failure_probability)


def nothing(orders: Orders) -> Cost:
    return Cost((0.0,) * len(orders))


@lru_cache(maxsize=256)
def cost_of(kind: Spend, orders: Orders) -> Cost:
    """The cost of some equal answers."""
    divergences = renyi_curve([kind], np.array(orders, dtype=float))
    return Cost(tuple(map(float, divergences)), basic_epsilon(leaves_of([kind])), kind.failure_probability * kind.count)


def orders_for(budget: Budget) -> Orders:
    """The whole order at which the most equal Gaussian answers fit, and some orders below it for sampled ones."""
    if budget.delta == 0:
        return (2,)  # at delta 0 only pure epsilons fit, whatever the order
    orders = np.arange(2.0, 1024 + 1)
    delta = AMONG * budget.delta / len(_BESIDE_GAUSSIAN)
    rooms = budget.epsilon - np.log1p(-1 / orders) + (math.log(delta) + np.log(orders)) / (orders - 1)
    best = float(orders[np.argmax(rooms / orders)])
    return tuple(sorted({max(2, round(best * share)) for share in _BESIDE_GAUSSIAN}))


def filter_epsilon(cost: Cost, orders: Orders, budget: Budget) -> float:
    """The epsilon that the filter proves; infinity where failure probabilities take more than their share of delta."""
    by_order: Array = epsilons_at(np.array(orders), np.array(cost.divergences), AMONG * budget.delta / len(orders))
    epsilon = min(float(by_order.min()), cost.pure)
    failure_probability = failure_cost(cost.failure_probability, max(epsilon, budget.epsilon))
    return epsilon if failure_probability <= FAILURE_SHARE * budget.delta else math.inf
