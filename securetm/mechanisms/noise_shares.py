"""Noise in shares: each party adds a share, and only the sum over enough parties is private. It needs a secure sum.

Shares are added after rounding and before masking (Kairouz, Liu and Steinke 2021; Agarwal, Kairouz and Liu 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import TYPE_CHECKING, ClassVar

from securetm.contracts import Answer, Array, Claim, Cohort, Needs, NoiseBy, Noised, RoundContext, Terms
from securetm.errors import BadSetting, NeedsSum
from securetm.mechanisms.mechanism_errors import TooFewShares
from securetm.mechanisms.noising import CUT, PartyNoise, check_bounded, check_positive, claims_against, multiplier_of, sampled
from securetm.mechanisms.samplers import Sampler, discrete_gaussian, skellam
from securetm.mechanisms.share_sums import discrete_gaussian_distance, discrete_gaussian_event, skellam_event
from securetm.mechanisms.surplus_noise import SurplusPart, most_draws, sizes_of, variances_of, without_surplus

if TYPE_CHECKING:
    from dp_accounting import DpEvent

DISTRIBUTIONS = ("discrete_gaussian", "skellam")
LEAST_VARIANCE = 0.25  # of one of several discrete Gaussian shares
LEAST_PART = 16.0  # variance of a part of a share: sums of such parts are one Gaussian for the accountant


@dataclass(frozen=True)
class NoiseShares(PartyNoise):
    """Adds shares whose sum has a deviation of `noise_multiplier` times the l2 bound, whatever parties drop out or collude.

    Only shares count that nobody subtracts: those of the parties that remain, less those that may collude. A share has a part
    that is enough if nobody is missing, and parts for those who may be missing. Where a part is not needed, the parties reveal
    it and it is taken off the sum; else it stays. A share may exceed its reach with a chance of 2^-100 per coordinate and part,
    and is then cut where it is sealed. A sum that wraps around its ring is a function of the sum that does not: accuracy is
    lost, not privacy.
    """

    noise_multiplier: float
    distribution: str = "discrete_gaussian"
    noise_by: ClassVar[NoiseBy] = NoiseBy.SHARES
    leaves: ClassVar[Noised] = Noised.SHARE
    plan_numbers: ClassVar[Mapping[str, str]] = {"noise_multiplier": "noise_multiplier"}

    def __post_init__(self) -> None:
        check_positive(self, "noise_multiplier")
        if self.distribution not in DISTRIBUTIONS:
            raise BadSetting("NoiseShares", "distribution", self.distribution, known=tuple(DISTRIBUTIONS))

    def noise(self, terms: Terms, cohort: Cohort) -> Sampler:
        """The part of one party's share that always stays."""
        return self._law(self._variances(terms, cohort)[0])

    def surplus(self, terms: Terms, cohort: Cohort) -> tuple[SurplusPart, ...]:
        """The other parts, each with the number of survivors from which on it is not needed."""
        more = self._variances(terms, cohort)[1:]
        return tuple(SurplusPart(self._law(one), size) for one, size in zip(more, sizes_of(cohort)[: len(more)], strict=True))

    def _law(self, variance: float) -> Sampler:
        return skellam(variance) if self.distribution == "skellam" else discrete_gaussian(sqrt(variance))

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms of a vector with a share of noise. Refuses a cohort in which no honest share is certain, and narrow shares.

        The bound on sums of discrete Gaussians is proved for deviations of one half or more.
        """
        if terms.noised is Noised.WHOLE:
            return terms
        if terms.needs is not Needs.SUM:
            raise NeedsSum(type(self).__name__)
        narrow = self.distribution == "discrete_gaussian" and self._variances(terms, cohort)[0] < LEAST_VARIANCE
        if narrow and honest_shares(cohort) > 1:
            given = f"{multiplier_of(self, terms):g}"
            raise BadSetting(type(self).__name__, "noise_multiplier", given, "leaves each share a deviation below one half")
        check_bounded(self, terms, terms.l2)
        noise, surplus = self.noise(terms, cohort), self.surplus(terms, cohort)
        share = hypot(noise.deviation, *(part.noise.deviation for part in surplus))
        reach = terms.reach + noise.reach(CUT) + sum(part.noise.reach(CUT) for part in surplus)
        deviation, sizes = share * sqrt(honest_shares(cohort)), tuple(part.parties for part in surplus)
        return replace(terms, noised=self.leaves, deviation=deviation, reach=reach, surplus=sizes)

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Run by a party, on whole numbers. What reveals the parts that may not be needed stays with the party."""
        if not self.adds(terms):
            return vector
        vector = super().on_vector(vector, terms, context)
        context.surplus[:] = [part.add(vector, context.entropy) for part in self.surplus(terms, context.cohort)]
        return vector

    def on_answer(self, answer: Answer, terms: Terms, context: RoundContext) -> Answer:
        """Run by the opening role, on whole numbers: takes off what was revealed, and says how much noise stays."""
        if not self.adds(terms):
            return answer
        answer = super().on_answer(answer, terms, context)
        return without_surplus(answer, self.surplus(terms, context.cohort), terms, context.cohort)

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Claims against the coordinator with its helpers. A party knows its own share, so it counts as one helper."""
        helpers = cohort.colluding
        return claims_against({"coordinator": helpers, "model reader": helpers, "party": helpers - 1})

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """One answer with the sum of the honest shares in it."""
        if not self.adds(terms):
            return None
        if self.distribution == "skellam":
            return sampled(skellam_event(terms, self._total(terms)), terms)
        return sampled(discrete_gaussian_event(terms, *self._draws(terms, cohort)), terms)

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:
        """The total variation distance of the drawn shares, that of their sum, and the chance that one is clamped.

        Each is added up over all coordinates.
        """
        if not self.adds(terms):
            return 0.0
        laws = (self.noise(terms, cohort), *(part.noise for part in self.surplus(terms, cohort)))
        drawn = terms.size * len(cohort.members) * sum(one.failure_probability + CUT for one in laws)
        if self.distribution == "skellam":
            return drawn
        return drawn + discrete_gaussian_distance(terms, *self._draws(terms, cohort))

    def _total(self, terms: Terms) -> float:
        """The variance of the honest noise in every sum, at least."""
        return (multiplier_of(self, terms) * terms.l2) ** 2

    def _variances(self, terms: Terms, cohort: Cohort) -> tuple[float, ...]:
        honest_shares(cohort)
        return variances_of(cohort, self._total(terms), LEAST_PART)

    def _draws(self, terms: Terms, cohort: Cohort) -> tuple[float, int, float]:
        """The least variance of a draw, how many draws give the whole at most, and the whole."""
        parts = self._variances(terms, cohort)
        return min(parts), most_draws(cohort, len(parts)), self._total(terms)


def honest_shares(cohort: Cohort) -> int:
    """The number of shares in every sum that no adversary can subtract. Refuses a cohort that may have none."""
    honest = cohort.threshold - cohort.colluding
    if honest < 1:
        raise TooFewShares(cohort.threshold, cohort.colluding)
    return honest
