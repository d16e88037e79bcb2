"""What every noise asks of terms before it protects them, and what it says of itself after. It draws nothing.

The samplers draw; the mechanisms decide who adds what. Events count one document or person more or less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from securetm.contracts import INF, Claim, Domain, Noised, Terms, Unit
from securetm.errors import BadSetting, NoiseNeedsIntegers, NoiseOnNoise, NoiseWithoutClip

if TYPE_CHECKING:
    from dp_accounting import DpEvent

PRIVATE = "the total is differentially private"
CUT = 2.0**-100  # chance that one coordinate's noise exceeds its reach; it is then cut, and that chance is part of the slack


def check_positive(mechanism: object, name: str, value: float) -> None:
    """Refuses a setting that is not a finite number above 0."""
    if not 0 < value < INF:
        raise BadSetting(type(mechanism).__name__, name, str(value), "must be above 0 and finite")


def check_bounded(mechanism: object, terms: Terms, bound: float) -> None:
    """Refuses terms whose noise nobody could size: no bound, no whole numbers, or shares of other noise in them."""
    name = type(mechanism).__name__
    if terms.noised is Noised.SHARE:
        raise NoiseOnNoise(name)
    if bound == INF:
        raise NoiseWithoutClip(name, terms.unit.value)
    if terms.domain is not Domain.INTEGER:
        raise NoiseNeedsIntegers(name)


def claims_against(helpers: dict[str, int]) -> frozenset[Claim]:
    """Privacy of a document or person, whichever the question's rows belong to, against each with so many helpers.

    An adversary whose own knowledge already takes the noise off again is left out: it has fewer than no helpers.
    """
    units = (Unit.DOCUMENT, Unit.PERSON)
    return frozenset(Claim(PRIVATE, who, n, unit) for who, n in helpers.items() if n >= 0 for unit in units)


def sampled(event: DpEvent, terms: Terms) -> DpEvent:
    """The same event for units that took part by secret coins only."""
    from dp_accounting import PoissonSampledDpEvent  # slow to import, and only accountants ask

    return event if terms.sampling == 1 else PoissonSampledDpEvent(terms.sampling, event)
