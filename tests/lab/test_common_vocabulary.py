"""Words found in sums beside a curator's: a small run, and what the committed one says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lab
from lab.reproduce.common_vocabulary import NEWS, PROFILES, deviation_of, reproduce
from securetm.models.questions.word_sums import ROUNDS

COMMITTED = Path(lab.__file__).parent / "results" / "reproduce-common-vocabulary.json"


@pytest.mark.slow
def test_a_small_run_finds_more_in_sums_than_parties_by_themselves() -> None:
    result = reproduce(epsilons=(8.0,), documents=1500)
    words = {row["selection"]: row["words"] for row in result["rows"]}
    assert words["sum, dp-central"] > words["one sum, dp-central"] > words["parties apart"] >= words["party alone"]
    assert words["curator, larger miss"] >= words["curator"]
    assert all(row["of_nobody"] <= 10 for row in result["rows"])


def test_shares_of_noise_cost_less_than_half_as_much_again() -> None:
    """All parties remain, and two of them may collude: the noise of three is needed, that of five is there."""
    central, distributed = (deviation_of(name, 2.0) for name in ("dp-central", "dp-distributed"))
    assert abs(central - 2.0 * ROUNDS**0.5) < 0.02 * 2.0 * ROUNDS**0.5
    assert central < distributed < 1.5 * central


def committed() -> dict[tuple[str, float, str], dict[str, Any]]:
    rows = json.loads(COMMITTED.read_text("utf-8"))["rows"]
    return {(row["corpus"], row["epsilon"], row["selection"]): row for row in rows}


def test_five_parties_keep_nine_tenths_of_what_a_curator_keeps() -> None:
    """In sums, and in one sum with the whole budget."""
    sums = {key: row for key, row in committed().items() if "sum, " in key[2]}
    assert {epsilon for corpus, epsilon, _ in sums if corpus == NEWS} == {1.0, 3.0, 8.0}
    assert {selection.split(", ")[1] for corpus, _, selection in sums if corpus == NEWS} == set(PROFILES)
    assert all(row["of_curator"] >= 0.9 for row in sums.values())


def test_closing_words_between_sums_finds_more_than_one_sum_of_the_same_budget() -> None:
    rows = committed()
    pairs = [(key, (*key[:2], key[2].removeprefix("one "))) for key in rows if key[2].startswith("one sum, ")]
    assert pairs
    assert all(rows[thrice]["words"] >= 1.1 * rows[once]["words"] for once, thrice in pairs if thrice in rows)
