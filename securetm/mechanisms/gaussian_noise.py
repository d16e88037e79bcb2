"""Gaussian noise that each party adds in full, so that no other role sees an exact sum. It bounds no row; a clip does.

What is added is a Gaussian rounded to whole numbers. For a whole number x, x plus rounded noise is x plus noise, rounded: a
view of the Gaussian mechanism's answer and nothing more, so its event is exactly that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from securetm.contracts import INF, Answer, Array, Claim, Cohort, Mechanism, NoiseBy, Noised, RoundContext, Terms
from securetm.mechanisms.noising import CUT, adding, check_bounded, check_positive, claims_alone, noised, sampled, with_noise
from securetm.mechanisms.samplers import Sampler, rounded_gaussian

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class GaussianNoise(Mechanism):
    """Adds noise of `noise_multiplier` times the l2 bound to each coordinate of a party's vector. Noised vectors pass."""

    noise_multiplier: float
    noise_by: ClassVar[NoiseBy] = NoiseBy.PARTY
    plan_numbers: ClassVar[Mapping[str, str]] = {"noise_multiplier": "noise_multiplier"}

    def __post_init__(self) -> None:
        check_positive(self, "noise_multiplier", self.noise_multiplier)

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:  # noqa: ARG002 - a party counts on nobody else's noise
        """The terms of a vector that is private by itself. Refuses terms without a bound on one document's row."""
        if terms.noised is Noised.WHOLE:
            return terms
        check_bounded(self, terms, terms.l2)
        noise = self._noise(terms)
        return replace(terms, noised=Noised.WHOLE, deviation=noise.deviation, reach=terms.reach + noise.reach(CUT))

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Claims that hold whatever other parties collude, as long as the document's own party does not."""
        return claims_alone(cohort)

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:  # noqa: ARG002
        """One Gaussian answer; nothing where words were selected before, since no noise is added then."""
        from dp_accounting import GaussianDpEvent

        return sampled(GaussianDpEvent(self.noise_multiplier), terms) if _adds(terms) else None

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:  # noqa: ARG002
        """The total variation distance between the drawn and the ideal noise, over all coordinates."""
        return terms.size * self._noise(terms).failure_probability if _adds(terms) else 0.0

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party, on whole numbers. Clamping the sum to its reach afterwards is post-processing."""
        return noised(vector, self._noise(terms), terms, context.entropy) if _adds(terms) else vector

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        """Run by the opening role: says how much noise of all parties is in the sum."""
        if not _adds(terms):
            return answer
        return with_noise(answer, self._noise(terms).deviation, adding(answer, context.cohort))

    def _noise(self, terms: Terms) -> Sampler:
        return rounded_gaussian(self.noise_multiplier * terms.l2)


def _adds(terms: Terms) -> bool:
    """Selected words are noised without a bound on a row, so nothing more is added to them."""
    return terms.noised is Noised.WHOLE and terms.l2 < INF
