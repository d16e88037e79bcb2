"""What noise mechanisms share: checks of terms, claims, and the deviation that an answer states. It draws nothing.

The samplers draw; the mechanisms decide who adds what. Events count one document or person more or less.
"""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt
from typing import TYPE_CHECKING

import numpy as np

from securetm.contracts import INF, Answer, Array, Claim, Cohort, Domain, Entropy, Noised, Terms, Unit
from securetm.errors import BadSetting, NeedsIntegers
from securetm.mechanisms.mechanism_errors import NoiseOnNoise, NoiseWithoutClip

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from securetm.mechanisms.samplers import Sampler

PRIVATE = "the total is differentially private"
CUT = (
    2.0**-100
)  # chance that one coordinate's noise exceeds its reach; it is then cut, and that chance is part of the failure probability


def check_positive(mechanism: object, name: str, value: float) -> None:
    """Refuses a setting that is not a finite number above 0."""
    if not 0 < value < INF:
        raise BadSetting(type(mechanism).__name__, name, str(value), "must be above 0 and finite")


def check_bounded(mechanism: object, terms: Terms, bound: float) -> None:
    """Refuses terms without a bound, terms that are not whole numbers, and terms that hold shares of noise already."""
    name = type(mechanism).__name__
    if terms.noised is Noised.SHARE:
        raise NoiseOnNoise(name)
    if bound == INF:
        raise NoiseWithoutClip(name, terms.unit.value)
    if terms.domain is not Domain.INTEGER:
        raise NeedsIntegers(name)


def with_noise(answer: Answer, deviation: float, parties: int = 1) -> Answer:
    """The answer, whose stated deviation also counts the noise of so many parties."""
    return replace(answer, deviation=hypot(answer.deviation, deviation * sqrt(parties))) if answer.total is not None else answer


def adding(answer: Answer, cohort: Cohort) -> int:
    """The number of parties whose vectors, and so whose noise, are in an opened sum."""
    return len(answer.survivors or cohort.members)


def claims_against(helpers: dict[str, int]) -> frozenset[Claim]:
    """Claims of privacy of a document or person, against each adversary with so many helpers.

    An adversary whose own knowledge already takes the noise off again is left out: it has fewer than no helpers.
    """
    units = (Unit.DOCUMENT, Unit.PERSON)
    return frozenset(Claim(PRIVATE, who, n, unit) for who, n in helpers.items() if n >= 0 for unit in units)


def claims_alone(cohort: Cohort) -> frozenset[Claim]:
    """Claims of a party that adds all noise itself: they hold unless the document's own party colludes."""
    others = len(cohort.members) - 1
    return claims_against({"coordinator": others, "model reader": others, "party": others - 1})


def sampled(event: DpEvent, terms: Terms) -> DpEvent:
    """The same event, amplified by secret sampling."""
    from dp_accounting import PoissonSampledDpEvent  # slow to import, and only accountants ask

    return event if terms.sampling == 1 else PoissonSampledDpEvent(terms.sampling, event)


def noised(vector: Array, noise: Sampler, terms: Terms, entropy: Entropy) -> Array:
    """Adds noise to a party's whole numbers, in place where possible: a step keeps no reference to its vector.

    32 bits hold them where they hold the reach; where noise exceeds its reach they wrap, a function of what 64 bits would hold.
    """
    held = vector.dtype == np.int64 or (vector.dtype == np.int32 and terms.reach < 2**31)
    out = vector if held and vector.flags.writeable and vector.flags.c_contiguous else vector.astype(np.int64)
    noise.add(entropy, out)
    return out
