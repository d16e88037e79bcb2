"""How much noise is in numbers that would be zero without it: its deviation, with an interval. It knows no profile."""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array


def deviation_of(values: Array, confidence: float) -> tuple[float, float, float]:
    """The deviation of normal numbers about zero, and its two-sided interval (chi-squared; all numbers independent)."""
    from scipy.stats import chi2

    square, count, tail = float(np.sum(np.square(values))), len(values), (1.0 - confidence) / 2.0
    low, high = (square / float(chi2.ppf(at, count)) for at in (1.0 - tail, tail))
    return float(np.sqrt(square / count)), float(np.sqrt(low)), float(np.sqrt(high))
