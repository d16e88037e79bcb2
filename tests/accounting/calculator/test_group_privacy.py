"""Group privacy: what a promise for documents is worth for somebody with several, never below exact figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent
from scipy import integrate, optimize, stats

from securetm.accounting.calculator.persons import People, grown, growth, of_group
from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.contracts import Array
from securetm.errors import BadSetting
from tests.accounting.exact import delta_at

from ...quick_part import quick

DELTA = 1e-6


def gaussian_epsilon(moved: float, delta: float) -> float:
    """Exact (Balle and Wang 2018): of one answer whose mean moves by so many deviations."""

    def left(epsilon: float) -> float:
        above, below = stats.norm.logcdf(moved / 2 - epsilon / moved), stats.norm.logcdf(-moved / 2 - epsilon / moved)
        return math.exp(above) - math.exp(epsilon + below) - delta

    return float(optimize.brentq(left, 0, 1000))


def mixture_delta(noise: float, rate: float, documents: int, epsilon: float) -> float:
    """Exact, of one sum that a binomial number of somebody's documents is in, in the worse direction."""
    law, places = stats.binom(documents, rate), np.linspace(-12 * noise, documents + 12 * noise, 20_001)
    with_them = sum(law.pmf(n) * stats.norm.pdf(places, n, noise) for n in range(documents + 1))
    without = stats.norm.pdf(places, 0, noise)

    def excess(one: Array, other: Array) -> float:
        return float(integrate.trapezoid(np.maximum(0.0, one - math.exp(epsilon) * other), places))

    return max(excess(with_them, without), excess(without, with_them))


@pytest.mark.parametrize("documents", [2, 20])
def test_documents_move_a_gaussian_sum_as_far_as_they_are_many(documents: int) -> None:
    exact = gaussian_epsilon(documents * math.sqrt(8) / 20, DELTA)
    found = of_group([Spend(GaussianDpEvent(20.0), count=8)], documents, DELTA)
    assert exact <= found.epsilon <= 1.01 * exact + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "rate", "documents"), quick([(1.0, 0.1, 3), (2.0, 0.3, 6)], (1.0, 0.1, 3)))
def test_of_sampled_documents_a_binomial_number_is_in_a_sum(noise: float, rate: float, documents: int) -> None:
    spend = Spend(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)))
    found = of_group([spend], documents, 1e-4)
    assert mixture_delta(noise, rate, documents, found.epsilon) <= 1e-4 * (1 + 1e-5)  # the integral here is a sum
    assert mixture_delta(noise, rate, documents, 0.97 * found.epsilon - 0.01) > 1e-4  # and it is hardly larger than needed


def test_the_theorem_grows_delta_with_epsilon() -> None:
    assert grown(1.0, DELTA, 3).epsilon == 3
    assert grown(1.0, DELTA, 3).delta == pytest.approx(DELTA * (1 + math.e + math.e**2))
    assert growth(0.0, 4) == 4
    assert grown(100.0, DELTA, 20).delta == 1  # nothing is promised
    assert grown(1.0, DELTA, 1).delta == pytest.approx(DELTA)


def test_at_a_given_delta_the_theorem_starts_from_a_smaller_one() -> None:
    """Where events say nothing of several documents, a document's delta is so small that it grows to the one asked for."""
    spends = [Spend(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), count=100)]
    theorem, mixed = (of_group(spends, 3, DELTA, moves_as_one=one) for one in (False, True))
    assert mixed.epsilon < theorem.epsilon
    each = theorem.epsilon / 3
    assert delta_at(spends, each) * growth(each, 3) <= DELTA * 1.001
    assert theorem.delta == DELTA


def test_failures_leave_no_finite_epsilon_where_they_exceed_delta() -> None:
    assert of_group([Spend(GaussianDpEvent(1.0), 1e-12, 10)], 20, DELTA).epsilon == math.inf
    assert of_group([Spend(LaplaceDpEvent(10.0))], 3, 0.0).epsilon == pytest.approx(0.3)


def test_one_document_is_what_it_was() -> None:
    spends = [Spend(GaussianDpEvent(3.0), count=2)]
    assert of_group(spends, 1, DELTA).epsilon == total(spends, DELTA).epsilon


def test_where_persons_are_named_the_person_is_protected() -> None:
    assert People().protected == "document"
    assert People(documents_per_person=3).protected == "person"
    assert People("document", 100, 5).protected == "document"
    assert People("", 100_000, None, 20_000).each == 5
    assert People("", 100_000, 7, 20_000).units == 20_000
    assert People("person", 100, 5).units == 20


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("family",), "--unit is family"),
        (("", 10, 11), "--documents-per-person is 11; it must be at most 10"),
        (("", 10, None, 11), "--persons is 11; it must be at most 10"),
        (("", 100, 2, 4), "4 persons with at most that many cannot have 100"),
        (("", 100, 0), "--documents-per-person is 0"),
    ],
)
def test_what_cannot_be_is_refused(asked: tuple[object, ...], said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        People(*asked)  # type: ignore[arg-type]
