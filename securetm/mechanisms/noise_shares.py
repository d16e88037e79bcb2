"""Noise in shares: each party adds a share, and only the sum over enough parties is private. It needs a secure sum.

Shares are added after rounding and before masking (Kairouz, Liu and Steinke 2021; Agarwal, Kairouz and Liu 2021). What sums of
them hide is proved in `protocols/gaussian_shares.md` (discrete Gaussian shares) and in the papers that are named here; that
enough noise stays where parts are taken off, in `protocols/surplus_noise.md`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, hypot, log1p, pi, sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from securetm.answers.clipped_sum import blocks_of
from securetm.contracts import Answer, Array, Claim, Cohort, Entropy, Needs, NoiseBy, Noised, RoundContext, Terms
from securetm.data_classes import dataclass, replace
from securetm.entropy import Expanded
from securetm.errors import BadSetting, Mismatch, NeedsSum
from securetm.mechanisms.noising import CUT, PartyNoise, check_bounded, check_positive, claims_against, multiplier_of, sampled
from securetm.mechanisms.samplers import Sampler, discrete_gaussian, skellam

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
        from securetm.contracts.events import GaussianDpEvent, SymmetricZCDpEvent

        if self.distribution == "skellam":  # too far from a Gaussian in total variation to be called one
            bound = skellam_divergence(terms, self._total(terms))
        elif one := as_one_gaussian(terms.size, *self._draws(terms, cohort)):
            return sampled(GaussianDpEvent(sqrt(one[0]) / terms.l2), terms)
        else:
            bound = gaussian_shares_divergence(terms, *self._draws(terms, cohort))
        return sampled(SymmetricZCDpEvent(*bound), terms)  # type: ignore[call-arg]  # its base has no types

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
        one = as_one_gaussian(terms.size, *self._draws(terms, cohort))
        return drawn + (one[1] if one else 0.0)

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
        raise Mismatch(
            "of {threshold} parties that must remain, {colluding} may collude: no honest share of noise is certain",
            hint="raise `threshold_share` (or `threshold`) of the profile, or lower `colluding`",
            threshold=cohort.threshold,
            colluding=cohort.colluding,
        )
    return honest


NEGLIGIBLE = 2.0**-80  # total variation of a whole vector from a function of a Gaussian mechanism, for each of two reasons
_WORTH = 0.1  # of the variance may be given for the Gaussian's curve: beyond, the Renyi bound gives the smaller epsilon
_TYPICAL_ORDER = 16  # at which the two bounds on Skellam noise are compared; both hold at every order


def as_one_gaussian(size: int, variance: float, shares: int, total: float = 0.0) -> tuple[float, float] | None:
    """A variance and a distance, or None where shares are too narrow.

    Whole numbers plus the sum of the shares are within the distance, in total variation, of a function of the same numbers plus
    continuous Gaussian noise of that variance in each of `size` coordinates. If a `total` is given, the shares add up to that
    variance, and none has less than `variance`.
    """
    total, ripples = total or shares * variance, sqrt(NEGLIGIBLE / size)
    between = log1p(2 / ripples) / (2 * pi**2)  # the variance with these ripples
    if 4 * between > total:
        return None
    # smoothing x (total - smoothing) / total is `between`; the smaller solution, in a form without cancellation
    smoothing = 2 * between / (1 + sqrt(1 - 4 * between / total))
    joined, first = size * sum(ripple(variance * k / (k + 1)) for k in range(1, shares)), ripple(smoothing)
    if smoothing > _WORTH * total or joined > NEGLIGIBLE:
        return None
    return total - smoothing, joined + size * ripple(between) * first * (1 + first) / (1 - first)


def ripple(variance: float) -> float:
    """How far sums of exp(-(x - y)^2 / 2 variance) over all whole x are from their integral, at most and relatively, for any y.

    By Poisson's summation the sum is the integral x (1 + 2 sum of exp(-2 pi^2 variance k^2) cos(2 pi k y)) over k from 1.
    """
    first = exp(-2 * pi**2 * variance)
    return 2 * first / (1 - first)


def gaussian_shares_divergence(terms: Terms, variance: float, shares: int, total: float = 0.0) -> tuple[float, float]:
    """rho and 0, where the Renyi divergence is at most rho x order: a sum of discrete Gaussians is almost one.

    Kairouz, Liu and Steinke 2021, the bound on sums of discrete Gaussians: tau is what "almost" costs.
    """
    l1 = _l1(terms)
    tau = 10 * sum(exp(-2 * pi**2 * variance * k / (k + 1)) for k in range(1, shares))
    total = total or shares * variance
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


SEED = 32  # bytes; the rest of PART is the hash of what was drawn
_AT_ONCE = 1 << 20  # draws at a time, the same for whoever draws them again


@dataclass(frozen=True)
class SurplusPart:
    """One part of every party's share. A sum over so many `parties` or more does not need it."""

    noise: Sampler
    parties: int

    def add(self, vector: Array, entropy: Entropy) -> bytes:
        """Run by a party: adds fresh noise in place. Returns what reveals it, which is as secret as the noise."""
        seed = entropy.bytes(SEED)
        return seed + self._apply(vector, seed, 1)

    def take_off(self, vector: Array, revealed: bytes) -> bool:
        """Run by the opening role: takes the noise off again, in place. Noise that is drawn otherwise here stays.

        So does what a party claims to have drawn and did not.
        """
        seed, drawn = revealed[:SEED], revealed[SEED:]
        if self._apply(vector, seed, -1) == drawn:
            return True
        self._apply(vector, seed, 1)
        return False

    def _apply(self, vector: Array, seed: bytes, sign: int) -> bytes:
        """Adds or subtracts what the seed gives, and hashes it."""
        stream, hashed = Expanded(seed), hashlib.sha256()
        for start in range(0, len(vector), _AT_ONCE):
            part = vector[start : start + _AT_ONCE]
            drawn = self.noise.draw(stream, len(part))
            hashed.update(drawn.astype("<i8", copy=False).data)
            part += sign * drawn
        return hashed.digest()


def sizes_of(cohort: Cohort) -> tuple[int, ...]:
    """The numbers of survivors for which the noise is measured out: all parties, 1, 2, 4, ... fewer, and the fewest allowed.

    A sum over a number in between keeps the noise of the next smaller one.
    """
    members, fewest = len(cohort.members), cohort.threshold
    missing = (0, *(1 << doubled for doubled in range(members.bit_length())))
    return (*(members - gone for gone in missing if members - gone > fewest), min(members, fewest))


def variances_of(cohort: Cohort, total: float, least: float) -> tuple[float, ...]:
    """The variances of the parts of one share, for sums with `total` in the honest shares. The first part always stays.

    There is one part alone, enough for the fewest survivors, if some part would have less variance than `least`.
    """
    whole = [total / (size - cohort.colluding) for size in sizes_of(cohort)]
    parts = (whole[0], *(more - enough for enough, more in pairwise(whole)))
    return parts if min(parts) >= least else (whole[-1],)


def most_draws(cohort: Cohort, parts: int) -> int:
    """How many draws of honest parties give the whole variance, at most, if each share has so many parts."""
    sizes = sizes_of(cohort) if parts > 1 else (cohort.threshold,)
    return max((size - cohort.colluding) * kept for kept, size in enumerate(sizes, start=1))


def without_surplus(answer: Answer, parts: Sequence[SurplusPart], terms: Terms, cohort: Cohort) -> Answer:
    """The opened sum without the noise that it does not need, and with the deviation of what stays in it."""
    if answer.total is None:
        return answer
    survivors, total, taken = answer.survivors or cohort.members, answer.total, [0] * len(parts)  # by part: of how many parties
    if answer.revealed and (unneeded := terms.unneeded(len(survivors))):
        vector = np.concatenate([np.asarray(total[block.name], np.int64).ravel() for block in terms.layout])
        for told in answer.revealed.values():
            for part, one in zip(unneeded, told, strict=True):
                taken[part] += parts[part].take_off(vector, one)
        total = blocks_of(vector, terms)
    left = [part.noise.deviation * sqrt(len(survivors) - gone) for part, gone in zip(parts, taken, strict=True)]
    return replace(answer, total=total, revealed={}, deviation=hypot(answer.deviation, *left))
