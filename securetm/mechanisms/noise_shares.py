"""Noise in shares: each party adds a share, and only the sum over enough parties is private. It needs a secure sum.

Shares are added after rounding and before masking (Kairouz, Liu and Steinke 2021; Agarwal, Kairouz and Liu 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, ClassVar

from securetm.contracts import Claim, Cohort, Needs, NoiseBy, Noised, Terms
from securetm.errors import BadSetting, NeedsSum
from securetm.mechanisms.mechanism_errors import TooFewShares
from securetm.mechanisms.noising import CUT, PartyNoise, check_positive, claims_against, sampled
from securetm.mechanisms.samplers import Sampler, discrete_gaussian, skellam
from securetm.mechanisms.share_sums import discrete_gaussian_distance, discrete_gaussian_event, skellam_event

if TYPE_CHECKING:
    from dp_accounting import DpEvent

DISTRIBUTIONS = ("discrete_gaussian", "skellam")
LEAST_VARIANCE = 0.25  # of one of several discrete Gaussian shares


@dataclass(frozen=True)
class NoiseShares(PartyNoise):
    """Adds shares whose sum has a deviation of `noise_multiplier` times the l2 bound, whatever parties drop out or collude.

    Only shares count that nobody subtracts: those of the fewest parties that may remain, less those that may collude. Each has
    so much variance that these few are enough; what the others add comes on top. A share may exceed its reach with a chance
    of 2^-100 per coordinate and is then cut where it is sealed. A sum that wraps around its ring is a function of the sum that
    does not: accuracy is lost, not privacy.
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
        """One party's share."""
        variance = self._variance(terms, cohort)
        return skellam(variance) if self.distribution == "skellam" else discrete_gaussian(sqrt(variance))

    def relied_on(self, cohort: Cohort) -> int:
        """The honest shares."""
        return honest_shares(cohort)

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """The terms of a vector with a share of noise. Refuses a cohort in which no honest share is certain, and narrow shares.

        The bound on sums of discrete Gaussians is proved for deviations of one half or more.
        """
        if terms.noised is Noised.WHOLE:
            return terms
        if terms.needs is not Needs.SUM:
            raise NeedsSum(type(self).__name__)
        narrow = self.distribution == "discrete_gaussian" and self._variance(terms, cohort) < LEAST_VARIANCE
        if narrow and honest_shares(cohort) > 1:
            given = f"{self.noise_multiplier:g}"
            raise BadSetting(type(self).__name__, "noise_multiplier", given, "leaves each share a deviation below one half")
        return super().admit(terms, cohort)

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Claims against the coordinator with its helpers. A party knows its own share, so it counts as one helper."""
        helpers = cohort.colluding
        return claims_against({"coordinator": helpers, "model reader": helpers, "party": helpers - 1})

    def event(self, terms: Terms, cohort: Cohort) -> DpEvent | None:
        """One answer with the sum of the honest shares in it."""
        if not self.adds(terms):
            return None
        honest, variance = honest_shares(cohort), self._variance(terms, cohort)
        if self.distribution == "skellam":
            return sampled(skellam_event(terms, honest * variance), terms)
        return sampled(discrete_gaussian_event(terms, variance, honest), terms)

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:
        """The total variation distance of the drawn shares, that of their sum, and the chance that one is clamped.

        Each is added up over all coordinates.
        """
        if not self.adds(terms):
            return 0.0
        one, honest = self.noise(terms, cohort).failure_probability, honest_shares(cohort)
        clamped = terms.size * (honest * one + len(cohort.members) * CUT)
        if self.distribution == "skellam":
            return clamped
        return clamped + discrete_gaussian_distance(terms, self._variance(terms, cohort), honest)

    def _variance(self, terms: Terms, cohort: Cohort) -> float:
        return (self.noise_multiplier * terms.l2) ** 2 / honest_shares(cohort)


def honest_shares(cohort: Cohort) -> int:
    """The number of shares in every sum that no adversary can subtract. Refuses a cohort that may have none."""
    honest = cohort.threshold - cohort.colluding
    if honest < 1:
        raise TooFewShares(cohort.threshold, cohort.colluding)
    return honest
