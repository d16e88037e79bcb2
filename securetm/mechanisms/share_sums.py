"""What sums of shares hide: bounds on noise that several parties add in shares. It draws nothing, and it composes nothing.

The proofs are in `protocols/gaussian_shares.md` (discrete Gaussian shares) and in the papers that are named here.
"""

from __future__ import annotations

from math import exp, log1p, pi, sqrt
from typing import TYPE_CHECKING

from securetm.contracts import Terms

if TYPE_CHECKING:
    from dp_accounting import DpEvent

NEGLIGIBLE = 2.0**-80  # total variation of a whole vector from a function of a Gaussian mechanism, for each of two reasons
_WORTH = 0.1  # of the variance may be given for the Gaussian's curve: beyond, the Renyi bound gives the smaller epsilon
_TYPICAL_ORDER = 16  # at which the two bounds on Skellam noise are compared; both hold at every order


def discrete_gaussian_event(terms: Terms, variance: float, shares: int, total: float) -> DpEvent:
    """One answer with discrete Gaussian noise of a `total` variance in it: a Gaussian, or a Renyi bound if it is too narrow.

    The noise is the sum of at most so many draws, of which none has less than `variance`.
    """
    from dp_accounting import GaussianDpEvent  # slow to import, and only accountants ask

    if found := as_one_gaussian(terms.size, variance, shares, total):
        return GaussianDpEvent(sqrt(found[0]) / terms.l2)
    return symmetric_event(*gaussian_shares_divergence(terms, variance, shares, total))


def discrete_gaussian_distance(terms: Terms, variance: float, shares: int, total: float) -> float:
    """The total variation distance between the answer and a function of its event's, for ideal shares."""
    found = as_one_gaussian(terms.size, variance, shares, total)
    return found[1] if found else 0.0


def skellam_event(terms: Terms, variance: float) -> DpEvent:
    """One answer with Skellam noise of this variance. It is too far from a Gaussian in total variation to be called one."""
    return symmetric_event(*skellam_divergence(terms, variance))


def symmetric_event(rho: float, xi: float) -> DpEvent:
    """The event of symmetric noise whose Renyi divergence is at most xi + rho x order."""
    from securetm.contracts.zcdp_event import SymmetricZCDpEvent

    return SymmetricZCDpEvent(rho, xi)  # type: ignore[call-arg]  # its base has no types


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
