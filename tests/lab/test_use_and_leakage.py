"""What protections cost and what attacks get: ratios, gains over guessing, and points only where an attack was made."""

from __future__ import annotations

from typing import Any

import pytest

from lab.measuring import committed
from lab.reproduce.use_and_leakage import MEMBERS, OPEN, TEXTS, plots, reproduce, with_ratio
from securetm.errors import BadSetting

RUN = {"corpus": "titles", "model": "lda", "right": 50, "judged": 100, "megabytes": 0.5}


def rows() -> list[dict[str, Any]]:
    """A run without protection, one that keeps four fifths of its use, and one of a model that has no other run."""
    gained = {f"{TEXTS}_gained{end}": value for end, value in (("", 0.5), ("_low", 0.4), ("_high", 0.6))}
    return [
        {**RUN, "protection": OPEN, **gained},
        {**RUN, "protection": "masked", "right": 40},
        {**RUN, "model": "moments"} | gained,
    ]


def test_use_is_told_over_the_run_without_protection() -> None:
    given = [{"protection": "masked", **row} for row in rows()]
    plain, masked, better = (with_ratio(row, given) for row in given)
    assert plain["use"] == 1
    assert masked["use"] == 0.8
    assert masked["use_low"] < 0.8 < masked["use_high"]
    assert masked["use_high"] > 1  # of so few documents
    assert better["use"] == 1
    assert (
        with_ratio({**better, "right": 60, "protection": OPEN}, [*given, {**better, "right": 60, "protection": OPEN}])["use"]
        == 1
    )
    assert "use" not in with_ratio({**RUN, "corpus": "posts", "protection": "masked"}, given)


def test_a_run_without_an_attack_has_no_point() -> None:
    given = [{"protection": "masked", **row} for row in rows()]
    panels = plots([with_ratio(row, given) for row in given])
    assert [len(panel["points"]) for panel in panels] == [2, 0]  # the masked run has none


def test_an_unknown_case_is_refused() -> None:
    with pytest.raises(BadSetting, match="fits no case"):
        reproduce(only=("model=nmf",))


def test_committed_runs_show_what_is_said_of_them() -> None:
    """Masks hide each party and not the sum; noise of the parties hides texts from the coordinator, and costs use."""
    found = committed("reproduce-use-and-leakage")["rows"]
    by = {(row["corpus"], row["model"], row["protection"]): row for row in found}
    for corpus in dict.fromkeys(row["corpus"] for row in found):
        for model in ("semantic", "moments", "lda"):
            assert by[corpus, model, "masked"]["use"] == pytest.approx(by[corpus, model, OPEN]["use"], abs=0.05)
        shown = {
            one: by[corpus, "semantic", one][f"{TEXTS}_gained_low"] for one in (OPEN, "masked", "dp-distributed, epsilon 3")
        }
        assert shown["dp-distributed, epsilon 3"] < 0.3 < min(shown[OPEN], shown["masked"])
    gained = [(row, f"{kind}_gained") for row in found for kind in (TEXTS, MEMBERS) if f"{kind}_gained" in row]
    assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for row, name in gained)
    assert all(row[f"{name}_low"] <= row[f"{name}_ceiling"] for row, name in gained)
