"""Noise in shares: each party adds a share, and only the sum over enough parties is private. It needs a secure sum.

Shares are added after rounding and before masking (Kairouz, Liu and Steinke 2021; Agarwal, Kairouz and Liu 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, pi, sqrt
from typing import TYPE_CHECKING, ClassVar

from securetm.contracts import Claim, Cohort, Needs, NoiseBy, Noised, Terms
from securetm.errors import BadSetting, NeedsSum
from securetm.mechanisms.mechanism_errors import TooFewShares
from securetm.mechanisms.noising import CUT, PartyNoise, check_positive, claims_against, sampled
from securetm.mechanisms.samplers import Sampler, discrete_gaussian, skellam

if TYPE_CHECKING:
    from dp_accounting import DpEvent

DISTRIBUTIONS = ("discrete_gaussian", "skellam")
LEAST_VARIANCE = 0.25  # of one of several discrete Gaussian shares
_TYPICAL_ORDER = 16  # at which the two bounds on Skellam noise are compared; both hold at every order


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
        from securetm.zcdp_event import SymmetricZCDpEvent

        honest, variance = honest_shares(cohort), self._variance(terms, cohort)
        by_skellam = self.distribution == "skellam"
        rho, xi = (
            skellam_divergence(terms, honest * variance) if by_skellam else gaussian_shares_divergence(terms, variance, honest)
        )
        return sampled(SymmetricZCDpEvent(rho, xi), terms)  # type: ignore[call-arg]  # its base has no types

    def failure_probability(self, terms: Terms, cohort: Cohort) -> float:
        """The total variation distance of the drawn shares, and the chance that one is clamped, over all coordinates."""
        if not self.adds(terms):
            return 0.0
        one = self.noise(terms, cohort).failure_probability
        return terms.size * (honest_shares(cohort) * one + len(cohort.members) * CUT)

    def _variance(self, terms: Terms, cohort: Cohort) -> float:
        return (self.noise_multiplier * terms.l2) ** 2 / honest_shares(cohort)


def honest_shares(cohort: Cohort) -> int:
    """The number of shares in every sum that no adversary can subtract. Refuses a cohort that may have none."""
    honest = cohort.threshold - cohort.colluding
    if honest < 1:
        raise TooFewShares(cohort.threshold, cohort.colluding)
    return honest


def gaussian_shares_divergence(terms: Terms, variance: float, shares: int) -> tuple[float, float]:
    """rho and 0, where the Renyi divergence is at most rho x order: a sum of discrete Gaussians is almost one.

    Kairouz, Liu and Steinke 2021, the bound on sums of discrete Gaussians: tau is what "almost" costs.
    """
    l1 = _l1(terms)
    tau = 10 * sum(exp(-2 * pi**2 * variance * k / (k + 1)) for k in range(1, shares))
    total = shares * variance
    ideal, spread = terms.l2**2 / total, terms.size * tau**2
    loose, apart = ideal + tau * terms.size / 2, (sqrt(ideal) + sqrt(spread)) ** 2
    return min(loose, apart, ideal + 2 * tau * l1 / sqrt(total) + spread) / 2, 0.0


def skellam_divergence(terms: Terms, variance: float) -> tuple[float, float]:
    """rho and xi, where the Renyi divergence is at most xi + rho x order (Agarwal, Kairouz and Liu 2021, for vectors)."""
    squared, l1 = terms.l2**2, _l1(terms)
    ideal = squared / (2 * variance)
    fine = ideal + squared / (2 * variance**2), max(0.0, (6 * l1 - squared) / (4 * variance**2))
    coarse = ideal, 3 * l1 / (2 * variance)
    return min(fine, coarse, key=lambda bound: bound[0] * _TYPICAL_ORDER + bound[1])


def _l1(terms: Terms) -> float:
    """A bound on l1 from l2: the square of a whole number is no smaller than the number."""
    return min(terms.l1, sqrt(terms.size) * terms.l2, terms.l2**2)
