"""Half of a budget for the question before a training, by the rule that the committed result was fitted to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dp_accounting import GaussianDpEvent

import lab
from lab.fits.rounds_and_starts import fitted_share as fitted
from securetm.accounting.composition import total
from securetm.accounting.spends import Spend
from securetm.models.start_share import USUAL_START, noise_of_start

RESULT = Path(lab.__file__).parent / "results" / "reproduce-start-rule.json"


def test_the_rule_is_what_the_committed_rows_give() -> None:
    result = json.loads(RESULT.read_text("utf-8"))
    assert fitted(result["rows"]) == result["start_share"] == USUAL_START


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_answers_that_share_a_budget_spend_it_together(share: float) -> None:
    answers = [Spend(GaussianDpEvent(noise_of_start(3.0, 1e-5, part))) for part in (share, 1 - share)]
    assert total(answers, 1e-5).epsilon == pytest.approx(3.0, rel=0.01)
