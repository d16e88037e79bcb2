"""Bounds what answers about single documents spend of somebody with several of them: group privacy, with its delta.

It knows no question and no profile. Where events are Gaussian, loss distributions of the group itself are tighter than k times
epsilon: k documents move an unsampled sum k times as far. Of sampled ones a binomial number is in each sum; the mixture of
Gaussians of that number dominates (Choquette-Choo et al. 2023; Ganesh 2024, Tight group-level DP guarantees for DP-SGD).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import privacy_loss_distribution as distributions
from scipy import stats

from securetm.accounting.bounds import PLD, bounds_of
from securetm.accounting.composition import total, with_failures
from securetm.accounting.losses import FINEST, rounding_of
from securetm.accounting.spends import Leaves, Spend, failure_probability_of, leaves_of

GROUP = "group privacy"
_MOST_MIXED = 64  # documents of one person for which the mixture is computed; beyond, nothing of use can be promised
_CELLS = 20_000  # of one answer's distribution
_TAIL = 1e-15
_HALVINGS = 16


@dataclass(frozen=True)
class GroupBound:
    """Somebody with so many documents is protected to (epsilon, delta), as this accountant proves."""

    epsilon: float
    delta: float
    accountant: str


def of_group(spends: Sequence[Spend], documents: int, delta: float, *, moves_as_one: bool = True) -> GroupBound:
    """The least epsilon that is proved at this delta for somebody with so many documents; infinity if none is.

    `moves_as_one` says that the events bound any number of documents: their rows add up, and each has the same bound. It is
    false where a failure probability speaks of a single document, such as that of a rare word that gets through.
    """
    if documents == 1:
        return GroupBound(*_plain(spends, delta))
    by_events = _by_events(spends, documents, delta) if moves_as_one else []
    if by_events:
        return min(by_events, key=lambda bound: bound.epsilon)
    return GroupBound(_at(spends, documents, delta), delta, GROUP)


def grown(epsilon: float, delta: float, documents: int) -> GroupBound:
    """The theorem of group privacy: k times epsilon, and delta x (1 + e^epsilon + ... + e^((k - 1) epsilon)), at most 1."""
    return GroupBound(documents * epsilon, min(1.0, delta * growth(epsilon, documents)), GROUP)


def growth(epsilon: float, documents: int) -> float:
    """By how much the delta of a group exceeds that of one document."""
    if documents * epsilon > 700:
        return math.inf
    return math.expm1(documents * epsilon) / math.expm1(epsilon) if epsilon > 0 else float(documents)


def _plain(spends: Sequence[Spend], delta: float) -> tuple[float, float, str]:
    found = total(spends, delta)
    return found.epsilon, delta, found.accountant


def _at(spends: Sequence[Spend], documents: int, delta: float) -> float:
    """The theorem at a given delta: a document's delta is taken so small that it grows to no more than this one."""

    def fits(power: float) -> float:
        """The document's epsilon at that power of e below delta, or infinity where its delta grows too large."""
        epsilon = total(spends, delta * math.exp(-power)).epsilon
        return epsilon if epsilon < math.inf and math.exp(-power) * growth(epsilon, documents) <= 1 else math.inf

    least, most = 0.0, 1.0
    while most < 600 and fits(most) == math.inf:
        least, most = most, 2 * most
    if fits(most) == math.inf:
        return math.inf
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        least, most = (least, middle) if fits(middle) < math.inf else (middle, most)
    return documents * fits(most)


def _by_events(spends: Sequence[Spend], documents: int, delta: float) -> list[GroupBound]:
    """Bounds by the events themselves, where each of them says how far several documents move an answer."""
    leaves, lost = leaves_of(spends), failure_probability_of(spends)
    moved = tuple((_moved(event, documents), count) for event, count in leaves)
    if any(event is None for event, _ in moved):
        return []
    if not any(isinstance(event, PoissonSampledDpEvent) for event, _ in leaves):
        known = [(bound.epsilon, bound.accountant) for bound in bounds_of(moved)]
    else:
        known = [(_mixed(leaves, documents), PLD)] if documents <= _MOST_MIXED else []
    return [GroupBound(with_failures(epsilon, delta, lost), delta, accountant) for epsilon, accountant in known]


def _moved(event: Any, documents: int) -> Any:
    """The event of an unsampled answer that so many documents move; a sampled one as it is; None where none is known."""
    if isinstance(event, PoissonSampledDpEvent):
        return event if isinstance(event.event, GaussianDpEvent) else None
    if isinstance(event, GaussianDpEvent | LaplaceDpEvent):
        return type(event)(event.noise_multiplier / documents)
    return None


def _mixed(leaves: Leaves, documents: int) -> Callable[[float], float]:
    """Epsilon by delta of all answers, each by the loss distribution of the group."""
    interval = max(FINEST, max(_reach(event, documents) for event, _ in leaves) / _CELLS)
    together, rounding = distributions.identity(value_discretization_interval=interval), rounding_of(leaves)
    for event, count in leaves:
        one = _loss(event, documents, interval)
        together = together.compose(one if count == 1 else one.self_compose(count, _TAIL), _TAIL)

    def epsilon(delta: float) -> float:
        with np.errstate(over="ignore"):
            return float(together.get_epsilon_for_delta(delta - rounding)) if delta > rounding else math.inf

    return epsilon


def _loss(event: Any, documents: int, interval: float) -> Any:
    if isinstance(event, GaussianDpEvent):
        return distributions.from_gaussian_mechanism(event.noise_multiplier / documents, value_discretization_interval=interval)
    if isinstance(event, LaplaceDpEvent):
        return distributions.from_laplace_mechanism(event.noise_multiplier / documents, value_discretization_interval=interval)
    many = stats.binom(documents, event.sampling_probability)
    kept = [number for number in range(documents) if many.sf(number) > _TAIL]
    chances = [float(many.pmf(number)) for number in range(len(kept) + 1)]
    numbers, rest = list(range(len(chances))), float(many.sf(len(kept)))
    if rest > 0:  # what is left of the tail counts as if all documents were there
        numbers, chances = [*numbers, documents], [*chances, rest]
    return distributions.from_mixture_gaussian_mechanism(
        event.event.noise_multiplier,
        [float(number) for number in numbers],
        [chance / math.fsum(chances) for chance in chances],
        value_discretization_interval=interval,
    )


def _reach(event: Any, documents: int) -> float:
    """About the largest loss of one answer."""
    noise = event.event.noise_multiplier if isinstance(event, PoissonSampledDpEvent) else event.noise_multiplier
    return float(12 * documents / noise + (documents / noise) ** 2)
