"""Exact confidence intervals of a share: Clopper and Pearson (1934), two-sided. It assumes that tries are independent."""

from __future__ import annotations


def clopper_pearson(hits: int, of: int, confidence: float) -> tuple[float, float]:
    """All shares that would not make so many successes in so many tries too surprising; (0, 1) where nothing was tried."""
    from scipy.stats import beta

    if of == 0:
        return 0.0, 1.0
    tail = (1.0 - confidence) / 2.0
    low = float(beta.ppf(tail, hits, of - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1.0 - tail, hits + 1, of - hits)) if hits < of else 1.0
    return low, high
