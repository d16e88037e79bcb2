"""`securetm compare-profiles` and `explain` of several: one row a question, differences marked, every answer on the screen."""

from __future__ import annotations

import pytest

from .conftest import securetm


def test_two_profiles_fit_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = securetm("compare-profiles", "masked", "dp-distributed")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 80
    assert "…" not in said.out
    assert said.out == securetm("explain", "masked", "dp-distributed").out


def test_what_differs_is_marked() -> None:
    rows = {row["question"]: row for row in securetm("compare-profiles", "masked", "fortress", "--json").json["rows"]}
    assert rows["Who sees the model?"]["differs"] is False
    assert rows["May the coordinator lie?"]["answers"] == {"masked": "no: all follow the protocol", "fortress": "yes"}
    assert "epsilon = 3" in rows["What tells the model of one document?"]["answers"]["fortress"]
