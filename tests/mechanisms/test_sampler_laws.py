"""Noise has the law it names: goodness of fit with mutants that fail, sums of shares, and opendp as oracle."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from securetm.contracts import Array
from securetm.entropy import OperatingSystem
from securetm.mechanisms.samplers import (
    Sampler,
    StaircaseSampler,
    discrete_gaussian,
    discrete_laplace,
    rounded_gaussian,
)
from tests.mechanisms.known_laws import CASES, DRAWS, LAWS, RARE, p_value
from tests.quick_part import quick


@pytest.mark.parametrize(
    ("law", "parameter"), quick(CASES, *(case for case in CASES if case[1] in (0.15, 0.3, 0.1, 128.0, 2.0**24)))
)
def test_a_million_draws_have_the_law(law: str, parameter: float) -> None:
    make, below, _ = LAWS[law]
    sampler = make(parameter)
    drawn = sampler.draw(OperatingSystem(), DRAWS)
    assert drawn.dtype == np.int64
    assert p_value(drawn, below(parameter), sampler.deviation) > RARE
    drawn = drawn.astype(np.float64)  # the stated deviation is the ideal law's
    spread = np.sqrt(np.mean(drawn**4) - np.mean(drawn**2) ** 2) / math.sqrt(DRAWS)
    assert abs(np.mean(drawn**2) - sampler.deviation**2) < 7 * spread  # outside once in 10^11 draws
    assert abs(drawn.mean()) < 7 * sampler.deviation / math.sqrt(DRAWS)
    assert 0 < sampler.failure_probability < 2.0**-100


@pytest.mark.parametrize(("law", "parameter"), [(law, p) for law, p in CASES if p in (8.0, 64, 1000.0)])
def test_half_the_noise_is_noticed(law: str, parameter: float) -> None:
    make, below, _ = LAWS[law]
    half = make(parameter / 4 if law == "skellam" else parameter / 2)
    assert p_value(half.draw(OperatingSystem(), DRAWS), below(parameter), make(parameter).deviation) < RARE


@pytest.mark.parametrize("make", [discrete_laplace, discrete_gaussian, rounded_gaussian])
def test_places_inside_a_block_are_all_alike(make: Callable[[float], Sampler]) -> None:
    """A scale is 64 to 128 blocks wide: 64 parts of a block are equally likely, up to what 1e6 draws cannot see."""
    sampler = make(3e8)
    assert isinstance(sampler, StaircaseSampler)
    part = (sampler.draw(OperatingSystem(), DRAWS) >> (sampler.stairs.bits - 6)) & 63
    counts = np.bincount(part, minlength=64)
    assert stats.chisquare(counts).pvalue > RARE
    if make is not discrete_laplace:  # and the low bits, which no cell above sees
        assert stats.chisquare(np.bincount(sampler.draw(OperatingSystem(), DRAWS) & 63, minlength=64)).pvalue > RARE


@pytest.mark.parametrize(("law", "parameter"), CASES)
def test_a_reach_is_the_smallest(law: str, parameter: float) -> None:
    make, below_of, _ = LAWS[law]
    below = below_of(parameter)
    for chance in (0.3, 1e-3, 1e-9):
        reach = make(parameter).reach(chance)
        if reach < 10**7:  # beyond, one more or less is no difference to double precision
            assert 2 * below(np.array([-reach - 1]))[0] <= chance * (1 + 1e-6)
            assert reach == 0 or law == "skellam" or 2 * below(np.array([-reach]))[0] > chance * (1 - 1e-6)


def test_far_reaches_stay_ordered() -> None:
    for sampler in (discrete_gaussian(20.0), discrete_gaussian(2000.0), discrete_laplace(2000.0)):
        reaches = [sampler.reach(2.0**-bits) for bits in range(1, 115)]
        assert reaches == sorted(reaches)


def theirs(kind: str, scale: float, n: int) -> Array:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"))
    make, distance = (
        (dp.m.make_laplace, dp.l1_distance("i64")) if kind == "laplace" else (dp.m.make_gaussian, dp.l2_distance("f64"))
    )
    return np.array(make(space, distance, scale=scale)([0] * n))


@pytest.mark.parametrize(("kind", "make"), [("laplace", discrete_laplace), ("gaussian", discrete_gaussian)])
@pytest.mark.parametrize("scale", quick([0.7, 5.0, 1000.0], 5.0))
def test_opendp_draws_the_same_law(kind: str, make: Callable[[float], Sampler], scale: float) -> None:
    """Two samples in common cells; half the noise fails."""
    oracle = theirs(kind, scale, 30_000)
    ours, half = (make(s).draw(OperatingSystem(), 300_000) for s in (scale, scale / 2))
    assert two_samples(oracle, ours) > RARE
    assert two_samples(oracle, half) < RARE


def two_samples(one: Array, two: Array) -> float:
    edges = np.unique(np.quantile(one, np.linspace(0.01, 0.99, 40)).round())
    counts = np.array([np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (one, two)])
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0]).pvalue)
