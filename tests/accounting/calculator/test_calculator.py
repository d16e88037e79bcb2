"""The calculator: sentences that stand alone, figures never rounded down, and what somebody with several is promised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent
from scipy import integrate, optimize, stats

import securetm
from securetm.accounting.calculator.budget_report import BudgetReport, Promise, Question, places, replacing, report, sentence
from securetm.accounting.calculator.mechanisms import Shares, Target, Training
from securetm.accounting.calculator.persons import People, grown, growth, of_group
from securetm.accounting.composition import total, within
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.spends import Spend
from securetm.contracts import Array
from securetm.errors import BadSetting, Mistake, NotFound, SecuretmError
from securetm.stages import Unwatched
from tests.quick_part import quick

from ..exact import delta_at

PROMISE = Promise("document", "the coordinator", "any one document was used", ("coins are secret", "noise is added"))


def sought(what: str, epsilon: float, **given: Any) -> BudgetReport:
    target = Target.of(what, epsilon, {**given, "delta": 1e-6})
    return report(target.question(Unwatched()), Unwatched())


def test_the_sentence_names_who_against_whom_which_change_and_every_assumption() -> None:
    said = sentence(PROMISE, 1.2345, 1e-6)
    assert said == (
        "Against the coordinator, it is hidden whether any one document was used (add or remove one document), "
        "to epsilon = 1.235 per document with delta = 1e-06, provided that coins are secret and noise is added."
    )


def test_a_delta_as_large_as_one_document_is_warned_of() -> None:
    assert sentence_delta(1e-4, 1_000) is None
    assert "above 1 / (10 N)" in str(sentence_delta(1e-4, 9_999))
    assert "1e-04" not in str(sentence_delta(1e-4, 10_000))
    assert "not below 1 / documents = 0.0001" in str(sentence_delta(1e-4, 10_000))


def test_replacing_is_group_privacy_of_two() -> None:
    assert "epsilon = 2 per document with delta = 3.7e-06" in replacing(1.0, 1e-6, "document")
    assert "epsilon = 16 per word occurrence, by" in replacing(8.0, 0.0, "word occurrence")
    assert "promises nothing" in replacing(20.0, 1e-6, "document")


def test_slack_beyond_delta_is_refused_in_a_sentence() -> None:
    with pytest.raises(Mistake, match="no epsilon per document holds at delta = 1e-06") as refused:
        report(Question("", PROMISE, (Spend(GaussianDpEvent(1.0), 1e-5),), 1e-6, "none", {}), Unwatched())
    assert "e^epsilon" in refused.value.advice()


def test_a_share_is_sized_for_the_fewest_honest_ones() -> None:
    shares = Shares(10, 8, 2, 1.0, 1000.0, 100, 0.1, 5, 1e-6)
    assert shares.sensitivity == 1000 + 2 * 10
    assert shares.share * math.sqrt(6) == pytest.approx(shares.sensitivity)
    assert shares.left(10, 0) == pytest.approx(math.sqrt(10 / 8))  # nobody is missing: their noise is taken off
    assert shares.left(8, 0) == pytest.approx(math.sqrt(8 / 6))


@pytest.mark.slow
def test_what_is_solved_for_fits_and_a_little_less_noise_does_not() -> None:
    sheet = sought("noise", 0.5, documents=10_000, batch=1000, epochs=5)
    noise = sheet.found["solved"]["value"]
    assert sheet.epsilon <= 0.5
    assert not within(Training(10_000, 1000, 5, noise * 0.995, 1e-6).spends(), 0.5, 1e-6)


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    batch = sought("batch", 0.5, documents=60, noise=5.0, epochs=1).found["solved"]["value"]
    assert 1 <= batch < 60
    assert within(Training(60, batch, 1, 5.0, 1e-6).spends(), 0.5, 1e-6)
    assert not within(Training(60, batch + 1, 1, 5.0, 1e-6).spends(), 0.5, 1e-6)


def test_the_most_epochs_fit_and_one_step_more_does_not() -> None:
    epochs = sought("epochs", 3.0, documents=5000, noise=4.0, batch=5000).found["solved"]["value"]
    assert Training(5000, 5000, epochs, 4.0, 1e-6).steps == round(epochs) > 1
    assert not within(Training(5000, 5000, epochs + 1, 4.0, 1e-6).spends(), 3.0, 1e-6)


def test_a_curve_ends_at_what_was_asked() -> None:
    assert places(10.0)[-1] == 10.0
    assert places(1.0, whole=True) == (1.0,)
    assert all(place == int(place) for place in places(37, whole=True))


# ---- group privacy ---------------------------------------------------------------------------------------------------------


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


# ---- from Python -----------------------------------------------------------------------------------------------------------


def test_a_budget_is_one_call() -> None:
    found = securetm.budget(documents=100_000, batch=1_000, epochs=10, noise=1.0, delta=1e-5)
    assert found["epsilon"] == pytest.approx(1.828, rel=0.01)
    assert (found["unit"], found["accountant"], found["sampling"]) == ("document", "PLD", "poisson")


@pytest.mark.parametrize(
    ("question", "settings", "error"),
    [("magic", {}, NotFound), ("dp-sgd", {"colour": 3}, NotFound), ("dp-sgd", {"noise": -1.0}, SecuretmError)],
)
def test_nonsense_gets_a_letter(question: str, settings: dict[str, object], error: type[Exception]) -> None:
    sensible = {"documents": 100, "batch": 10, "epochs": 1, "noise": 1.0, "delta": 1e-5}
    with pytest.raises(error):
        securetm.budget(question, **{**sensible, **settings})
