"""What is said of a series of runs over the same documents."""

from __future__ import annotations

from datetime import timedelta

import pytest

from securetm.accounting.calculator.series import MOST, RunOfSeries, Series
from securetm.reports.budget import in_words

RUN = RunOfSeries("a", "dp-central", "2026-01-01 10:00", 1, 0.5, 0.5)


def said(further: int, each: timedelta | None, ends: str) -> str:
    return in_words(Series("north", "notes", "document", 8.0, 1e-6, (RUN, RUN), 4.0, further, each, ends))


def test_every_sentence_begins_with_a_capital() -> None:
    assert "2 runs. At least 200 further runs like the last one fit." in said(MOST, None, "")
    assert "2 runs. 3 further runs like the last one fit." in said(3, None, "")


@pytest.mark.parametrize(
    ("each", "how_often"),
    [
        (timedelta(hours=2), "with less than a day between two runs"),
        (timedelta(days=1), "a run every day"),
        (timedelta(days=9), "a run every 9 days"),
    ],
)
def test_the_pace_is_no_number_of_nothing(each: timedelta, how_often: str) -> None:
    assert how_often in said(3, each, "2026-11-29")
