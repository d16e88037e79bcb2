"""What noise mechanisms share: when they add noise, what they then state and claim, and how noise gets into a vector.

The samplers draw; each mechanism names its law and its event. Events count one document or person more or less.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import hypot, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from securetm.contracts import (
    INF,
    Answer,
    Array,
    Claim,
    Cohort,
    Domain,
    Entropy,
    Mechanism,
    NoiseBy,
    Noised,
    RoundContext,
    Terms,
    Unit,
)
from securetm.errors import Mismatch, NeedsIntegers, check_setting

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from securetm.mechanisms.samplers import Sampler

PRIVATE = "the total is differentially private"
# The chance that one coordinate's noise exceeds its reach. It is then cut, and the chance is part of the failure probability.
CUT = 2.0**-100


class AddedNoise(Mechanism):
    """Noise of one law on every coordinate of a bounded vector of whole numbers."""

    leaves: ClassVar[Noised] = Noised.WHOLE  # how noised the vectors are that parties send

    @abstractmethod
    def noise(self, terms: Terms, cohort: Cohort) -> Sampler:
        """The law of the noise that one role adds to a coordinate."""

    def bound(self, terms: Terms) -> float:
        """The bound on one row that the noise is scaled by."""
        return terms.l2

    def adds(self, terms: Terms) -> bool:
        """Whether noise is added under the terms after it. Selected words are noised without a bound, and get no more noise."""
        return terms.noised is self.leaves and self.bound(terms) < INF

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:
        """The total variation distance between the drawn and the ideal noise, over all coordinates."""
        return terms.size * self.noise(terms, cohort).failure_probability if self.adds(terms) else 0.0


class PartyNoise(AddedNoise):
    """Noise that each party adds to its own vector. Vectors that are noised already pass."""

    noise_by: ClassVar[NoiseBy] = NoiseBy.PARTY

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms of the noised vector. Refuses terms without a bound on one document's row."""
        if terms.noised is Noised.WHOLE:
            return terms
        check_bounded(self, terms, self.bound(terms))
        noise = self.noise(terms, cohort)
        return replace(terms, noised=self.leaves, deviation=noise.deviation, reach=terms.reach + noise.reach(CUT))

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Claims that hold whatever other parties collude, as long as the document's own party does not."""
        return claims_alone(cohort)

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party, on whole numbers. Clamping a noised sum to its reach afterwards is post-processing."""
        return noised(vector, self.noise(terms, context.cohort), terms, context.entropy) if self.adds(terms) else vector

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        """Run by the opening role: says how much noise of all parties is in the sum."""
        if not self.adds(terms):
            return answer
        cohort = context.cohort
        return with_noise(answer, self.noise(terms, cohort).deviation, len(answer.survivors or cohort.members))


def check_positive(mechanism: object, name: str) -> None:
    """Refuses a setting that is not a finite number above 0."""
    check_setting(mechanism, name, 0 < getattr(mechanism, name) < INF, "must be above 0 and finite")


def check_bounded(mechanism: object, terms: Terms, bound: float) -> None:
    """Refuses terms without a bound, terms that are not whole numbers, and terms that hold shares of noise already."""
    name = type(mechanism).__name__
    if terms.noised is Noised.SHARE:
        raise noise_on_noise(name)
    if bound == INF:
        raise Mismatch(
            "{mechanism} has no bound to measure its noise by: nothing limits what one {unit} adds to the sum",
            hint="in the profile, put a [[mechanism]] that clips real rows or bounds counts before the one that adds noise",
            mechanism=name,
            unit=terms.unit.value,
        )
    if terms.domain is not Domain.INTEGER:
        raise NeedsIntegers(name)


def with_noise(answer: Answer, deviation: float, parties: int = 1) -> Answer:
    """The answer, whose stated deviation also counts the noise of so many parties."""
    return replace(answer, deviation=hypot(answer.deviation, deviation * sqrt(parties))) if answer.total is not None else answer


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
    from securetm.contracts.events import PoissonSampledDpEvent

    return event if terms.sampling == 1 else PoissonSampledDpEvent(terms.sampling, event)


def multiplier_of(mechanism: Any, terms: Terms) -> float:
    """The deviation of the noise over the bound on a row: this question's own, or else the mechanism's."""
    return terms.multiplier or mechanism.noise_multiplier


def gaussian_answer(noise_multiplier: float, terms: Terms) -> DpEvent:
    """The event of one Gaussian answer."""
    from securetm.contracts.events import GaussianDpEvent

    return sampled(GaussianDpEvent(noise_multiplier), terms)


def noised(vector: Array, noise: Sampler, terms: Terms, entropy: Entropy) -> Array:
    """Adds noise to a party's whole numbers, in place where possible: a step keeps no reference to its vector.

    32 bits hold them where they hold the reach; where noise exceeds its reach they wrap, a function of what 64 bits would hold.
    """
    held = vector.dtype == np.int64 or (vector.dtype == np.int32 and terms.reach < 2**31)
    out = vector if held and vector.flags.writeable and vector.flags.c_contiguous else vector.astype(np.int64)
    noise.add(entropy, out)
    return out


def noise_on_noise(mechanism: str) -> Mismatch:
    """The refusal of a second mechanism that adds noise."""
    return Mismatch(
        "{mechanism} meets a vector that already carries shares of noise, so nobody could say what both together spend",
        hint="in the profile, keep one mechanism that adds noise",
        mechanism=mechanism,
    )
