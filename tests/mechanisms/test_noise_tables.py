"""Every bound of every table against another way to compute it, in many more digits than are kept."""

from __future__ import annotations

from itertools import pairwise

import mpmath
import pytest

from securetm.mechanisms import noise_laws as tables

mpmath.mp.dps = 80


def laplace(scale: float, top: int) -> list:
    return [mpmath.exp(-k / mpmath.mpf(scale)) for k in range(top + 1)]


def gaussian(sigma: float, top: int) -> list:
    return [mpmath.exp(-(k**2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(top + 1)]


def rounded(sigma: float, top: int) -> list:
    """Each side from its own tail, so that nothing cancels."""
    tails = [mpmath.erfc((k - mpmath.mpf(1) / 2) / (mpmath.mpf(sigma) * mpmath.sqrt(2))) / 2 for k in range(top + 2)]
    return [before - after for before, after in pairwise(tails)]


def skellam(variance: float, top: int) -> list:
    return [mpmath.besseli(k, mpmath.mpf(variance)) * mpmath.exp(-mpmath.mpf(variance)) for k in range(top + 1)]


CASES = [
    (tables.laplace_weights, laplace, 0.2),
    (tables.laplace_weights, laplace, 7.3),
    (tables.gaussian_weights, gaussian, 0.3),
    (tables.gaussian_weights, gaussian, 11.7),
    (tables.rounded_weights, rounded, 0.3),
    (tables.rounded_weights, rounded, 11.7),
    (tables.skellam_weights, skellam, 0.07),
    (tables.skellam_weights, skellam, 150.5),
]


@pytest.mark.parametrize(("weights", "law", "parameter"), CASES, ids=lambda one: getattr(one, "__name__", str(one)))
def test_bounds_are_right_to_a_hundred_and_twenty_bits(weights, law, parameter) -> None:
    """The oracle's law is summed a good deal further than the table goes, so the cut is in the comparison."""
    table = tables.symmetric_table(weights(parameter))
    top = -table.first
    ideal = law(parameter, top + top // 4 + 3)
    total = ideal[0] + 2 * sum(ideal[1:])
    below = sum(ideal[top + 1 :])
    for i in range(table.outcomes - 1):
        below += ideal[abs(i - top)]
        assert abs(table.bound(i) / mpmath.mpf(2) ** 128 - below / total) < mpmath.mpf(2) ** -120
    assert 2 * sum(ideal[top + 1 :]) / total < tables.BEYOND
    exact = sum(2 * k * k * one for k, one in enumerate(ideal)) / total
    assert table.variance == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("sigma", [1e-6, 0.01, 0.07])
def test_almost_no_noise_is_a_short_table(sigma: float) -> None:
    for weights in (tables.laplace_weights, tables.gaussian_weights, tables.rounded_weights):
        assert tables.symmetric_table(weights(sigma)).outcomes <= 17
