"""Turns the score of an attack into a figure with its interval. This module judges nothing."""

from __future__ import annotations

import math

from securetm.auditing.attack import Estimate, Proportion
from securetm.auditing.audit_record import DOCUMENT, Measured
from securetm.auditing.intervals import clopper_pearson


def measured(name: str, unit: str, worth: Proportion | Estimate, confidence: float, reachable: float = 1.0) -> Measured:
    """A measure with its exact interval. An ideal attacker recovers only documents that took part."""
    if isinstance(worth, Estimate):
        value = None if math.isnan(worth.value) else worth.value
        return Measured(name, unit, value, worth.low, worth.high, worth.ceiling)
    confidence = 1.0 - (1.0 - confidence) * worth.doubt
    low, high = clopper_pearson(worth.hits, worth.of, confidence)
    most = round(worth.of * reachable) if unit == DOCUMENT else worth.of
    ceiling = clopper_pearson(most, worth.of, confidence)[0]
    share = worth.hits / worth.of if worth.of else None
    return Measured(name, unit, share, low, high, ceiling, worth.hits, worth.of)


def is_sound(worth: Proportion | Estimate) -> bool:
    """Whether it can be judged: no verdict may depend on NaN, or on an interval with its ends in the wrong order.

    An `Estimate` about which nothing is known has no value (NaN), but it has ends.
    """
    if isinstance(worth, Proportion):
        return 0 <= worth.hits <= worth.of and 0 < worth.doubt <= 1
    value = worth.low if math.isnan(worth.value) else worth.value
    return math.isfinite(worth.low) and not math.isnan(worth.ceiling) and worth.low <= value <= worth.high
