"""Discrete Laplace noise that each party adds to counts with an l1 bound. Its delta is its failure probability.

One coordinate that carries the whole l1 bound is the worst case: noise that hides a shift of a + b in one coordinate hides
shifts of a and b in two at least as well. With r = exp(-1/scale), the privacy loss of a shift by k is k - 2 min(Y, k) steps,
where P(Y >= j) = r^j / (1 + r). Divide the tail of min(Y, a) + min(Y', b) by that of min(Y, a + b): the ratio starts at 1,
rises above it and falls below it once. Likelihood ratios of equal mean whose tails cross once are ordered as Blackwell asks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import expm1, log1p
from typing import TYPE_CHECKING, ClassVar

from securetm.contracts import INF, Answer, Array, Claim, Cohort, Mechanism, NoiseBy, Noised, RoundContext, Terms
from securetm.errors import BadSetting
from securetm.mechanisms.noising import CUT, adding, check_bounded, check_positive, claims_alone, with_noise
from securetm.mechanisms.samplers import Sampler, discrete_laplace

if TYPE_CHECKING:
    from dp_accounting import DpEvent


@dataclass(frozen=True)
class DiscreteLaplaceNoise(Mechanism):
    """Adds noise of scale l1 / `epsilon` to each coordinate of a party's vector. Noised vectors pass."""

    epsilon: float
    noise_by: ClassVar[NoiseBy] = NoiseBy.PARTY

    def __post_init__(self) -> None:
        check_positive(self, "epsilon", self.epsilon)

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:  # noqa: ARG002 - a party counts on nobody else's noise
        """The terms of a vector that is private by itself. Refuses terms without a bound on one document's row."""
        if terms.noised is Noised.WHOLE:
            return terms
        check_bounded(self, terms, terms.l1)
        if terms.l1 < 1:
            raise BadSetting("DiscreteLaplaceNoise", "l1", str(terms.l1), "leaves a document no whole unit to add")
        noise = self._noise(terms)
        return replace(terms, noised=Noised.WHOLE, deviation=noise.deviation, reach=terms.reach + noise.reach(CUT))

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Claims that hold whatever other parties collude, as long as the document's own party does not."""
        return claims_alone(cohort)

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:  # noqa: ARG002
        """One answer about rows of whole numbers.

        Sampled, it is a pure epsilon of log(1 + q (e^epsilon - 1)); the worst mechanism of that epsilon tells one bit with
        that odds ratio, and so does discrete Laplace noise on a shift of one.
        """
        if not _adds(terms):
            return None
        from dp_accounting.dp_event import DiscreteLaplaceDpEvent

        steps, scale = int(terms.l1), terms.l1 / self.epsilon
        if terms.sampling == 1:
            return DiscreteLaplaceDpEvent(1 / scale, steps)
        return DiscreteLaplaceDpEvent(log1p(terms.sampling * expm1(steps / scale)), 1)

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:  # noqa: ARG002
        """The total variation distance between the drawn and the ideal noise, over all coordinates."""
        return terms.size * self._noise(terms).failure_probability if _adds(terms) else 0.0

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party, on whole numbers."""
        if not _adds(terms):
            return vector
        noised: Array = vector + self._noise(terms).draw(context.entropy, len(vector))
        return noised

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        """Run by the opening role: says how much noise of all parties is in the sum."""
        if not _adds(terms):
            return answer
        return with_noise(answer, self._noise(terms).deviation, adding(answer, context.cohort))

    def _noise(self, terms: Terms) -> Sampler:
        return discrete_laplace(terms.l1 / self.epsilon)


def _adds(terms: Terms) -> bool:
    return terms.noised is Noised.WHOLE and terms.l1 < INF
