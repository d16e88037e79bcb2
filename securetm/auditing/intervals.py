"""Exact two-sided confidence intervals of a share (Clopper and Pearson 1934), for independent tries."""

from __future__ import annotations


def clopper_pearson(hits: int, of: int, confidence: float) -> tuple[float, float]:
    """The exact interval of a share with these hits in this many tries; (0, 1) if nothing was tried."""
    tail = (1.0 - confidence) / 2.0
    return _from(hits, of, tail), 1.0 - _from(of - hits, of, tail)


def of_each(confidence: float) -> float:
    """The confidence of each of two statements at which both together have this confidence (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / 2.0


def _from(hits: int, of: int, tail: float) -> float:
    """The lower end. The upper end is 1 minus the lower end for the failures, which is exact for a small tail too."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, of - hits + 1, tail)) if hits else 0.0
