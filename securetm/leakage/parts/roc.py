"""What scores of members and of others are worth: the curve of true against false positives, and what is read off it.

It knows no attack. Where scores are equal nothing is told apart, so equal scores are always taken or left together.
"""

from __future__ import annotations

import math

import numpy as np

from securetm.contracts import Array
from securetm.leakage.attack import Estimate, Proportion
from securetm.leakage.illustrations import Curve
from securetm.leakage.intervals import of_each

_POINTS = 400  # of a curve that is drawn


def rates(members: Array, others: Array) -> tuple[Array, Array]:
    """False and true positives as shares, from a threshold above all scores (0, 0) down to one below all (1, 1)."""
    levels = np.unique(np.concatenate([members, others]))[::-1]
    false, true = (
        (len(scores) - np.searchsorted(np.sort(scores), levels, side="left")) / max(len(scores), 1)
        for scores in (others, members)
    )
    return np.concatenate([[0.0], false]), np.concatenate([[0.0], true])


def curve(label: str, members: Array, others: Array) -> Curve:
    """The line for the report. Of very many points those are kept that are spread evenly on a logarithmic scale."""
    across, up = rates(members, others)
    if len(across) > _POINTS:
        aims = np.concatenate([[0.0], np.geomspace(1 / max(len(others), 2), 1.0, _POINTS - 1)])
        kept = np.unique(np.append(np.searchsorted(across, aims, side="right") - 1, 0))
        across, up = across[kept], up[kept]
    return Curve("roc", label, tuple(map(float, across)), tuple(map(float, up)))


def chance() -> Curve:
    """What somebody who knows nothing reaches."""
    aims = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 50)])
    return Curve("roc", "chance", tuple(map(float, aims)), tuple(map(float, aims)))


def in_order(members: Array, others: Array) -> float:
    """The share of pairs in which the member scores above the other (the area under the curve); equal scores count half."""
    if not len(members) or not len(others):
        return 0.5  # nobody to tell apart
    ranked = np.sort(others)
    below, upto = (np.searchsorted(ranked, members, side=side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * len(others)))


def bounded_order(members: Array, others: Array, confidence: float) -> Estimate:
    """The same with an interval that holds for scores of any law (Hoeffding 1963, section 5: two-sample statistics)."""
    fewest = min(len(members), len(others))
    if not fewest:
        return Estimate(0.5, 0.0, 1.0, 0.0)
    found, half = in_order(members, others), math.sqrt(math.log(2 / (1 - confidence)) / (2 * fewest))
    return Estimate(found, max(found - half, 0.0), min(found + half, 1.0), 1.0 - half)


def let_through(others: int, share: float, confidence: float) -> int:
    """How many of so many others may lie above a threshold for at most that share of all others to lie above it, surely.

    The share that truly lies above the (k + 1)-th highest of n scores has a beta law with k + 1 and n - k, so the threshold is
    no luckier than it seems but with probability 1 - confidence. Below 0: there are too few others to say so of any threshold.
    """
    from scipy.stats import binom

    return int(binom.ppf(1 - confidence, others, share)) - 1 if others else -1


def found_at(members: Array, others: Array, share: float, confidence: float) -> Proportion:
    """Members above a threshold that surely lets at most that share of others through; nothing, where others are too few.

    The threshold spends one half of the doubt, and leaves the other to the interval of what lies above it.
    """
    allowed = let_through(len(others), share, of_each(confidence))
    if allowed < 0:
        return Proportion(0, 0)
    threshold = np.sort(others)[len(others) - 1 - allowed]
    return Proportion(int((members > threshold).sum()), len(members), doubt=0.5)
