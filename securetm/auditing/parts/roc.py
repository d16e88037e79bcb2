"""The ROC curve of scores of members and others, and the measures that are read from it.

Documents with equal scores are always on the same side of a threshold.
"""

from __future__ import annotations

import math

import numpy as np

from securetm.auditing.attack import Estimate, Proportion
from securetm.auditing.illustrations import Curve
from securetm.auditing.intervals import of_each
from securetm.contracts import Array

_POINTS = 400  # of a drawn curve


def rates(members: Array, others: Array) -> tuple[Array, Array]:
    """False and true positive rates, from a threshold above all scores (0, 0) to one below all (1, 1)."""
    levels = np.unique(np.concatenate([members, others]))[::-1]
    false, true = (
        (len(scores) - np.searchsorted(np.sort(scores), levels, side="left")) / max(len(scores), 1)
        for scores in (others, members)
    )
    return np.concatenate([[0.0], false]), np.concatenate([[0.0], true])


def curve(label: str, members: Array, others: Array) -> Curve:
    """The curve for the report. Of very many points, it keeps some that are spread evenly on a logarithmic scale."""
    across, up = rates(members, others)
    if len(across) > _POINTS:
        aims = np.concatenate([[0.0], np.geomspace(1 / max(len(others), 2), 1.0, _POINTS - 1)])
        kept = np.unique(np.append(np.searchsorted(across, aims, side="right") - 1, 0))
        across, up = across[kept], up[kept]
    return Curve("roc", label, tuple(map(float, across)), tuple(map(float, up)))


def chance() -> Curve:
    """The curve of random guesses."""
    aims = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 50)])
    return Curve("roc", "chance", tuple(map(float, aims)), tuple(map(float, aims)))


def area_under_curve(members: Array, others: Array) -> float:
    """The area under the curve: the share of pairs with the member above the other. Equal scores count half."""
    if not len(members) or not len(others):
        return 0.5  # there are no pairs
    ranked = np.sort(others)
    below, upto = (np.searchsorted(ranked, members, side=side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * len(others)))


def bounded_area(members: Array, others: Array, confidence: float) -> Estimate:
    """The area under the curve, with an interval for any distribution (Hoeffding 1963, section 5: two-sample statistics)."""
    fewest = min(len(members), len(others))
    if not fewest:
        return Estimate(0.5, 0.0, 1.0, 0.0)
    found, half = area_under_curve(members, others), math.sqrt(math.log(2 / (1 - confidence)) / (2 * fewest))
    return Estimate(found, max(found - half, 0.0), min(found + half, 1.0), 1.0 - half)


def allowed_false_positives(others: int, share: float, confidence: float) -> int:
    """How many of so many others may lie above a threshold, if its false positive rate is at most `share` at this confidence.

    The true rate above the (k + 1)-th highest of n scores has a beta distribution with k + 1 and n - k. A result below 0 means
    that there are too few others for any threshold.
    """
    from scipy.stats import binom

    return int(binom.ppf(1 - confidence, others, share)) - 1 if others else -1


def true_positives_at(members: Array, others: Array, share: float, confidence: float) -> Proportion:
    """The members above a threshold with at most this false positive rate; nothing if there are too few others.

    The threshold takes one half of the doubt, and the interval of the members above it the other half.
    """
    allowed = allowed_false_positives(len(others), share, of_each(confidence))
    if allowed < 0:
        return Proportion(0, 0)
    threshold = np.sort(others)[len(others) - 1 - allowed]
    return Proportion(int((members > threshold).sum()), len(members), doubt=0.5)
