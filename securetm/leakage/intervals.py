"""Exact confidence intervals of a share: Clopper and Pearson (1934), two-sided. It assumes that tries are independent."""

from __future__ import annotations


def clopper_pearson(hits: int, of: int, confidence: float) -> tuple[float, float]:
    """All shares that would not make so many successes in so many tries too surprising; (0, 1) where nothing was tried."""
    tail = (1.0 - confidence) / 2.0
    return _from(hits, of, tail), 1.0 - _from(of - hits, of, tail)


def of_each(confidence: float) -> float:
    """At what each of two statements must hold for both together to hold at this confidence (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / 2.0


def _from(hits: int, of: int, tail: float) -> float:
    """The lower end. The upper one is that of the failures: so a small tail is never lost in 1 - tail."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, of - hits + 1, tail)) if hits else 0.0
