"""The calculator's records: a sentence that stands alone, figures that are never rounded down, and sound totals behind them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.calculator.budget_report import (
    BudgetReport,
    Promise,
    Question,
    places,
    replacing,
    report,
    sentence,
)
from securetm.accounting.calculator.mechanisms import Shares, Target, Training
from securetm.accounting.composition import within
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.spends import Spend
from securetm.errors import Mistake
from securetm.stages import Unwatched

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
