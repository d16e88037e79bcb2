"""The committed trials say how often a forecast held on corpora that it was not fitted on, and the shipped rule is theirs."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from securetm.experiments.committed_frontier import committed
from securetm.experiments.forecast_fit import JUDGES, summary
from securetm.forecast.fitted_rule import FILE


@pytest.fixture(scope="module")
def result() -> Any:
    return committed("usefulness-forecast")


def test_the_shipped_rule_is_the_fitted_one(result: Any) -> None:
    shipped = json.loads(resources.files("securetm.forecast").joinpath(FILE).read_text("utf-8"))
    assert shipped == result["fitted"]
    assert not set(JUDGES) & set(shipped["corpora"])


def test_outcomes_lie_in_their_band_and_of_use_is_never_wrong(result: Any) -> None:
    told = summary(result["judged"])
    assert [one["corpus"] for one in told] == [*sorted(JUDGES, key=[row["corpus"] for row in told].index), "all"]
    for row in told:
        assert row["held_out_inside"] >= 0.7
        assert row["wrongly_of_use"] == 0
    assert told[-1]["classification_inside"] >= 0.7
    assert {row["epsilon"] for row in result["judged"]} >= {0.5, 1.0, 3.0, 8.0}
    assert sum(row["verdict"] == "of use" for row in result["judged"]) > 0
