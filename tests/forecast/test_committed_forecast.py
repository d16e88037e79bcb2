"""The committed trials say how often a forecast held on corpora that it was fitted without, and the shipped rule is theirs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from lab.fits.forecast import CLASSIFICATION, HELD_OUT, by_chance, points_of_frontier, points_of_trials, summary
from lab.measuring import Row, committed
from securetm.plans.forecast import FILE, ONE_CORPUS

TEXTS = {"20 Newsgroups", "TagMyNews", "SMS", "M10", "StackOverflow titles", "docstrings"}


def coverage_said(rows: Sequence[Row]) -> str:
    """The same in two sentences, for the page that describes the forecast."""
    *each, told = summary(rows)
    least = [100 * min(row[f"{name}_inside"] for row in each) for name in (HELD_OUT, CLASSIFICATION)]
    inside = [100 * told[f"{name}_inside"] for name in (HELD_OUT, CLASSIFICATION)]
    return (
        f"Of {told['outcomes']} outcomes under a budget {told['not_tried']} were too far from the others for a forecast; "
        f"of the rest {inside[0]:.0f} % lay in the first band and {inside[1]:.0f} % in the second (of the worst corpus "
        f'{least[0]:.0f} and {least[1]:.0f} %). "Of use" was said {told["of use"]} times and was wrong {told["wrongly_of_use"]}'
        f' times; "not of use" {told["not of use"]} times, wrong {told["wrongly_not_of_use"]} times.'
    )


@pytest.fixture(scope="module")
def result() -> Any:
    return committed("reproduce-usefulness-forecast")


def test_the_shipped_rule_is_the_fitted_one_and_has_seen_all_rows(result: Any) -> None:
    shipped = json.loads(resources.files("securetm.plans").joinpath(FILE).read_text("utf-8"))
    assert shipped == result["fitted"]
    points = [*points_of_trials(result["rows"]), *points_of_frontier(committed("reproduce-private-frontier")["rows"])]
    for name, fitted in shipped["models"].items():
        assert fitted["held_out"]["outcomes"] == sum(point.model == name and point.noised for point in points)
        assert fitted["classification"]["outcomes"] > fitted["held_out"]["outcomes"]


def test_on_corpora_left_out_outcomes_lie_in_their_band_and_of_use_is_never_wrong(result: Any) -> None:
    told = summary(result["judged"])
    assert {row["corpus"] for row in told} == {*TEXTS, "all"}
    for row in told:
        assert row["held_out_inside"] >= 0.65
        assert row["classification_inside"] >= 0.7
        assert row["wrongly_of_use"] == 0
    assert {row["epsilon"] for row in result["judged"]} >= {0.5, 1.0, 3.0, 8.0}
    assert told[-1]["of use"] > 0


def test_the_page_says_how_often_it_held(result: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "research" / "models.md").read_text("utf-8")
    assert coverage_said(result["judged"]) in page


def test_chances_are_about_as_often_true_as_they_say(result: Any) -> None:
    for row in by_chance(result["judged"]):
        assert row["of_use"] == pytest.approx(row["chance"], abs=0.15)


def test_what_is_said_of_a_model_of_one_corpus_is_committed() -> None:
    rows = committed("reproduce-privacy-utility")["rows"]
    noised = [row["f1"] for row in rows if row["epsilon"] is not None]
    (free,) = [row["f1"] for row in rows if row["profile"] == "masked"]
    assert f"{min(noised):.2f} to {max(noised):.2f}" in ONE_CORPUS["prodlda"]
    assert f"{free:.2f} without" in ONE_CORPUS["prodlda"]
