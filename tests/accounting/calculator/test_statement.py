"""The calculator's records: a sentence that stands alone, figures that are never rounded down, and sound totals behind them."""

from __future__ import annotations

import math

import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.accounting_errors import BudgetTooSmall, NoEpsilonHolds
from securetm.accounting.calculator.budget_report import Promise, sentence, sentence_large
from securetm.accounting.calculator.composed_report import composed, places, replacing
from securetm.accounting.calculator.distributed_noise import Shares
from securetm.accounting.calculator.dp_sgd import Training
from securetm.accounting.calculator.solve_for import Target
from securetm.accounting.calculator.word_noise import WordNoise
from securetm.accounting.composition import total, within
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.spends import Spend
from securetm.errors import BadSetting
from securetm.stages import Unwatched
from securetm.wording import downward, upward

PROMISE = Promise("document", "the coordinator", "any one document was used", ("coins are secret", "noise is added"))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1.8281, "1.829"),
        (2.0, "2"),
        (8, "8"),
        (19.106, "19.11"),
        (480, "480"),
        (1704.2, "1,705"),
        (0.0004, "0.001"),
        (1e-300, "0.001"),
        (0.0, "0"),
    ],
)
def test_a_budget_is_never_rounded_down(value: float, told: str) -> None:
    assert upward(value) == told
    assert float(told.replace(",", "")) >= value - 1e-9


def test_what_is_left_is_never_rounded_up() -> None:
    assert downward(2.01259) == "2.012"
    assert downward(-1.0) == "0"
    assert upward(math.inf) == "infinity"


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


def test_an_epsilon_beyond_ten_is_warned_of_with_its_unit() -> None:
    assert sentence_large(10.0, "document") is None
    assert "epsilon = 10.01 per document" in str(sentence_large(10.01, "document"))


def test_replacing_is_group_privacy_of_two() -> None:
    assert "epsilon = 2 per document with delta = 3.7e-06" in replacing(1.0, 1e-6, "document")
    assert "epsilon = 16 per word occurrence, by" in replacing(8.0, 0.0, "word occurrence")
    assert "promises nothing" in replacing(20.0, 1e-6, "document")


def test_slack_beyond_delta_is_refused_in_a_sentence() -> None:
    with pytest.raises(NoEpsilonHolds, match="no epsilon per document holds at delta = 1e-06") as refused:
        composed("", PROMISE, (Spend(GaussianDpEvent(1.0), 1e-5),), 1e-6, sampling="none", settings={})
    assert "e^epsilon" in refused.value.advice()


def test_a_part_of_a_step_is_a_step() -> None:
    assert Training(1000, 300, 1.0, 1.0, 1e-6).steps == 4
    assert Training(1000, 100, 3.0, 1.0, 1e-6).steps == 30
    assert Training(1000, 1000, 0.1, 1.0, 1e-6).steps == 1


def test_shuffled_batches_are_not_amplified() -> None:
    """One epoch of a thousand batches at noise 0.6: what others print is far below what an attacker reaches."""
    known = Training(1_000_000, 1000, 1.0, 0.6, 1e-5).shuffling()
    assert known["poisson"] == pytest.approx(1.43, rel=0.005)
    assert known["at_least"] == pytest.approx(7.99, rel=0.005)
    assert known["sound"] == pytest.approx(total([Spend(GaussianDpEvent(0.6))], 1e-5).epsilon)
    assert known["sound"] >= known["at_least"] > known["poisson"]


def test_word_budgets_are_added_up_to_documents_by_group_privacy() -> None:
    noise = WordNoise(8.0)
    assert [noise.of_document(words) for words in (8, 60, 213)] == [64, 480, 1704]
    assert WordNoise.of(None, 0.125, 2, (60,), 0.0).of_document(60) == 960


def test_a_share_is_sized_for_the_fewest_honest_ones() -> None:
    shares = Shares(10, 8, 2, 1.0, 1000.0, 100, 0.1, 5, 1e-6)
    assert shares.sensitivity == 1000 + 2 * 10
    assert shares.share * math.sqrt(6) == pytest.approx(shares.sensitivity)
    assert shares.left(10, 0) == pytest.approx(math.sqrt(10 / 8))  # nobody is missing: their noise is taken off
    assert shares.left(8, 0) == pytest.approx(math.sqrt(8 / 6))


def test_what_is_solved_for_fits_and_a_little_less_noise_does_not() -> None:
    sheet = Target("noise", 0.5, 10_000, 1e-6, batch=1000, epochs=5).report(Unwatched())
    noise = sheet.found["solved"]["value"]
    assert sheet.epsilon <= 0.5
    assert not within(Training(10_000, 1000, 5, noise * 0.995, 1e-6).spends(), 0.5, 1e-6)


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    batch = Target("batch", 0.5, 60, 1e-6, noise=5.0, epochs=1).report(Unwatched()).found["solved"]["value"]
    assert 1 <= batch < 60
    assert within(Training(60, batch, 1, 5.0, 1e-6).spends(), 0.5, 1e-6)
    assert not within(Training(60, batch + 1, 1, 5.0, 1e-6).spends(), 0.5, 1e-6)


def test_the_most_epochs_fit_and_one_step_more_does_not() -> None:
    epochs = Target("epochs", 3.0, 5000, 1e-6, noise=4.0, batch=5000).report(Unwatched()).found["solved"]["value"]
    assert Training(5000, 5000, epochs, 4.0, 1e-6).steps == round(epochs) > 1
    assert not within(Training(5000, 5000, epochs + 1, 4.0, 1e-6).spends(), 3.0, 1e-6)


def test_epochs_of_shuffled_batches_are_whole() -> None:
    sheet = Target("epochs", 1.0, 5000, 1e-6, noise=15.0, batch=5000, sampling="shuffled").report(Unwatched())
    assert sheet.found["solved"]["value"] == int(sheet.found["solved"]["value"]) > 0
    assert sheet.epsilon <= 1.0


def test_a_budget_too_small_for_one_step_is_said_so() -> None:
    with pytest.raises(BudgetTooSmall, match=r"no epochs stays within epsilon = 0\.01 per document"):
        Target("epochs", 0.01, 1000, 1e-6, noise=0.5, batch=1000).report(Unwatched())


def test_what_is_sought_must_not_be_given_and_the_rest_must() -> None:
    with pytest.raises(BadSetting, match=r"option --noise is .* it is what is sought"):
        Target("noise", 1.0, 1000, 1e-6, batch=10, epochs=1, noise=1.0)
    with pytest.raises(BadSetting, match="option --batch is missing"):
        Target("noise", 1.0, 1000, 1e-6, epochs=1)


def test_a_curve_ends_at_what_was_asked() -> None:
    assert places(10.0)[-1] == 10.0
    assert places(1.0, whole=True) == (1.0,)
    assert all(place == int(place) for place in places(37, whole=True))
