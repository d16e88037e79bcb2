"""Composes spends into a budget report: every accountant's figures, curves, and group privacy of replacing one unit.

It knows no question, and computes from public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from securetm.accounting.accounting_errors import NoEpsilonHolds
from securetm.accounting.bounds import by_renyi
from securetm.accounting.calculator.budget_report import (
    FALSE_POSITIVES,
    BudgetReport,
    ByAccountant,
    PlotLine,
    Promise,
    sentence,
    sentence_large,
    some,
)
from securetm.accounting.composition import Total, by_accountant, failure_cost, largest, total
from securetm.accounting.spends import Spend, failure_probability_of, leaves_of
from securetm.accounting.tradeoff import best_true_positive_rate
from securetm.stages import Stages
from securetm.wording import upward, upward_figure

POINTS = 8  # of a curve: each is a composition of its own
Spends = tuple[Spend, ...]

MEANS = {
    "PLD": "privacy loss distribution, rounded upwards: the tightest sound figure",
    "RDP": "Renyi divergences: sound for every event, looser than loss distributions",
    "PLD + RDP": "some answers by their loss distribution, the others by Renyi divergences",
    "pure": "the sum of pure epsilons: holds at delta = 0",
}


def composed(
    title: str,
    promise: Promise,
    spends: Spends,
    delta: float,
    *,
    sampling: str,
    settings: dict[str, Any],
    share: float = 1.0,
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
    **more: Any,
) -> BudgetReport:
    """The report of some spends: every accountant, the least sound epsilon, what an attacker can reach, and the sentence.

    `share` is the part of delta that these spends may use; `more` holds tables, plots and what was found beside.
    """
    proved = accountants(by_accountant(spends, share * delta))
    if not proved:
        raise NoEpsilonHolds(promise.unit, upward_figure(delta), upward_figure(failure_probability_of(spends)))
    best = proved[0]
    return BudgetReport(
        title=title,
        epsilon=best.epsilon,
        delta=delta,
        unit=promise.unit,
        sampling=sampling,
        accountant=best.accountant,
        statement=sentence(promise, best.epsilon, delta),
        by_accountant=proved,
        true_positives=best_true_positive_rate(spends, FALSE_POSITIVES),
        settings=settings,
        warnings=some(*warnings, sentence_large(best.epsilon, promise.unit)),
        notes=(replacing(best.epsilon, delta, promise.unit), *notes),
        **more,
    )


def accountants(proved: Sequence[Total]) -> tuple[ByAccountant, ...]:
    """What each accountant proves, with the theory behind it; one that proves no finite epsilon is left out."""
    return tuple(ByAccountant(row.accountant, row.epsilon, MEANS[row.accountant]) for row in proved if row.epsilon < math.inf)


def curve(
    name: str, spends_at: Callable[[float], Spends], most: float, delta: float, progress: Stages, *, whole: bool = False
) -> PlotLine:
    """Epsilon at some places up to `most`."""
    along = places(most, whole)
    progress.stage(f"epsilon, {name}", len(along))
    points = []
    for done, place in enumerate(along, start=1):
        points.append((float(place), total(spends_at(place), delta).epsilon))
        progress.step(done)
    return PlotLine(name, tuple(points))


def places(most: float, whole: bool = False) -> tuple[float, ...]:
    """Where a curve up to `most` is computed: denser at the beginning, where it bends."""
    shares = [((n + 1) / POINTS) ** 1.5 for n in range(POINTS)]
    return tuple(sorted({max(1.0, round(most * s)) if whole else round(most * s, 6) for s in shares[:-1]} | {most}))


def replacing(epsilon: float, delta: float, unit: str) -> str:
    """The sentence about replacing one unit, which is removing one and adding one: group privacy of two."""
    two = failure_cost(delta, epsilon)  # (2 epsilon, delta (1 + e^epsilon)) for two units
    change = f"Replacing one {unit} by another is removing one and adding one"
    if two >= 1:
        return f"{change}; at this epsilon group privacy promises nothing for it."
    chance = f" with delta = {two:.2g}" if delta else ""
    return f"{change}: at most epsilon = {upward(2 * epsilon)} per {unit}{chance}, by group privacy."


def surely_within(spends: Spends, epsilon: float, delta: float) -> bool:
    """Whether Renyi divergences, which are quick, prove that the spends fit. Where they do not, another accountant may."""
    return by_renyi(leaves_of(spends)).delta(epsilon) + failure_cost(failure_probability_of(spends), epsilon) <= delta


def largest_by(quick: Callable[[int], bool], fits: Callable[[int], bool], most: int) -> int:
    """The largest number that fits, found by the quick check, then in growing strides, then by halving."""
    low = largest(quick, most)
    stride = max(1, low // 8)
    while low + stride <= most and fits(low + stride):
        low, stride = low + stride, 2 * stride
    return low + largest(lambda more: fits(low + more), min(stride - 1, most - low))
