"""Tabulates what Gaussian noise spends, for the page on which people move sliders (`reports/budget_sliders.py`). No documents.

Each figure is that of `securetm budget` at the same setting, or less than a thousandth above it. A page looks up the next
setting that spends at least as much, so that it never says too little: epsilon grows with rounds and rate, not with noise.
`python -m lab.fits.budget_curves FILE` writes the tables anew.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from scipy import optimize, special

from securetm.accounting.composition import by_accountant, with_failures
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Spend

DELTAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
FAILURES = 1e-21  # more than the noise of a thousand rounds differs from an exact Gaussian's, in total variation
LARGEST = 40.0  # the largest epsilon that is tabulated
ROUNDING = 1e-5  # of loss distributions, beside the exact figure, for each unit of epsilon
STEPS = 64  # of the moved distance, to twice as far: two numbers of rounds, one twice the other, lie on the grid together
WIDER = 1e-9  # by which the noise is less than its place says, so that a page may round in its last bits
FIRST, LAST = -10 * STEPS, 3 * STEPS  # the distance, as powers of the 64th root of 2
RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
NOISES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 16.0)
COUNTS = (30, 100, 300, 1000, 3000, 10_000)


def unsampled(place: int) -> list[float]:
    """Epsilon at each delta where all documents are asked: rounds^0.5 / noise is the power of the 64th root of 2.

    Exact (Balle and Wang 2018), with room for the rounding of loss distributions, by which the command computes.
    """
    moved = 2.0 ** (place / STEPS) / (1 - WIDER)
    found = [with_failures(partial(_exact, moved), ALONE * delta, FAILURES) for delta in DELTAS]
    return _upward([epsilon + ROUNDING * (2 + epsilon) for epsilon in found])


def _exact(moved: float, delta: float) -> float:
    """Epsilon of one Gaussian answer that a unit moves by so many deviations."""

    def excess(epsilon: float) -> float:
        above, below = moved / 2 - epsilon / moved, -moved / 2 - epsilon / moved
        return math.exp(special.log_ndtr(above)) - math.exp(epsilon + special.log_ndtr(below)) - delta

    most = LARGEST + 10
    if delta <= 0 or excess(most) > 0:
        return math.inf
    return float(optimize.brentq(excess, 0, most, xtol=1e-10)) if excess(0) > 0 else 0.0


def sampled(rate: float, noise: float, count: int) -> list[float]:
    """Epsilon at each delta of so many Poisson-sampled batches."""
    spends = [Spend(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), count=count)]
    return _upward([min(bound.epsilon for bound in by_accountant(spends, delta)) for delta in DELTAS])


def tables() -> dict[str, Any]:
    moved = [unsampled(place) for place in range(FIRST, LAST + 1)]
    by_rate = [[[sampled(rate, noise, count) for count in COUNTS] for noise in NOISES] for rate in RATES]
    return {
        "deltas": DELTAS,
        "share": ALONE,
        "largest": LARGEST,
        "unsampled": {"steps": STEPS, "first": FIRST, "epsilon": _rising(moved)},
        "sampled": {"rates": RATES, "noises": NOISES, "counts": COUNTS, "epsilon": by_rate},
    }


def _upward(found: Sequence[float]) -> list[float]:
    """These rounded upwards; -1 above the largest."""
    return [math.ceil(epsilon * 1e6) / 1e6 if epsilon <= LARGEST else -1 for epsilon in found]


def _rising(rows: list[list[float]]) -> list[list[float]]:
    """The same with every figure at least as large as the one before it."""
    most, found = [0.0] * len(DELTAS), []
    for row in rows:
        most = [
            held if told == -1 and held == -1 else told if told == -1 else max(held, told)
            for held, told in zip(most, row, strict=True)
        ]
        found.append(list(most))
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(tables(), separators=(",", ":")) + "\n", encoding="utf-8")
