"""Dates of documents: ISO 8601 or refused with the place, and never quoted."""

from __future__ import annotations

import numpy as np
import pytest

from securetm.corpus.dates import all_periods, periods_of
from securetm.errors import Mistake


def test_dates_fall_into_their_periods() -> None:
    dates = np.array(["2026-11-23", "2024-02-29T18:30", "2024-12-31 23:59:59+02:00"])
    assert periods_of(dates, "year", "north") == ["2026", "2024", "2024"]
    assert periods_of(dates, "month", "north") == ["2026-11", "2024-02", "2024-12"]
    assert periods_of(dates, "day", "north") == ["2026-11-23", "2024-02-29", "2024-12-31"]
    assert periods_of(np.array(["1999", "1999-05"]), "year", "north") == ["1999", "1999"]


WRONG = (
    "11/23/2026", "2026-13", "2026-02-30", "20261123", "2026-1-5", "0000", "2026-11T10:00", "2026-11-23T25:00", "", "soon",
    "２０２６", "2026-11-23x", " 2026",
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_date_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Mistake, match="north, document 2:") as refused:
        periods_of(np.array(["2026", text]), "year", "north")
    assert refused.value.facts()["wanted"] == "date"


def test_the_text_of_a_wrong_date_is_not_shown() -> None:
    with pytest.raises(Mistake, match="names no") as refused:
        periods_of(np.array(["Ms 12 Secret " + "x" * 90]), "year", "north")
    assert refused.value.facts()["form"] == "aa 99 aaaaaa " + "a" * 17 + "…"


def test_a_coarse_date_is_in_no_finer_period() -> None:
    with pytest.raises(Mistake, match="names no month"):
        periods_of(np.array(["2026"]), "month", "north")
    with pytest.raises(Mistake, match="north"):
        periods_of(None, "year", "north")


def test_periods_between_are_there_too() -> None:
    assert all_periods(["2027-02", "2026-11"], "month") == ["2026-11", "2026-12", "2027-01", "2027-02"]
    assert all_periods(["2024-02-28", "2024-03-01"], "day") == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert all_periods(["0201", "2026"], "year") == ["0201", "2026"]  # a mistaken year gives no table of centuries
    assert all_periods([], "year") == []
