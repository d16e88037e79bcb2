"""Words found in one sum beside a curator's: a small run, and what the committed one says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from securetm import experiments
from securetm.experiments.common_vocabulary import PROFILES, deviation_of, reproduce

COMMITTED = Path(experiments.__file__).parent / "results" / "reproduce-common-vocabulary.json"


@pytest.mark.slow
def test_a_small_run_finds_more_in_the_sum_than_parties_by_themselves() -> None:
    result = reproduce(epsilons=(8.0,), documents=1500)
    words = {row["selection"]: row["words"] for row in result["rows"]}
    assert words["sum, dp-central"] > words["parties apart"] >= words["party alone"]
    assert words["curator, larger miss"] >= words["curator"]
    assert all(row["of_nobody"] <= 10 for row in result["rows"])


def test_shares_of_noise_cost_less_than_half_as_much_again() -> None:
    """All parties remain, and two of them may collude: the noise of three is needed, that of five is there."""
    central, distributed = (deviation_of(name, 2.0) for name in ("dp-central", "dp-distributed"))
    assert abs(central - 2.0) < 0.02 * 2.0
    assert central < distributed < 1.5 * central


def test_five_parties_keep_nine_tenths_of_what_a_curator_keeps() -> None:
    result = json.loads(COMMITTED.read_text("utf-8"))
    sums = [row for row in result["rows"] if row["selection"].startswith("sum, ")]
    assert {(row["epsilon"], row["selection"]) for row in sums} == {(e, f"sum, {p}") for e in (1.0, 3.0, 8.0) for p in PROFILES}
    assert all(row["of_curator"] >= 0.9 for row in sums)
    assert all(row["larger_miss"] >= 0.88 for row in sums)
