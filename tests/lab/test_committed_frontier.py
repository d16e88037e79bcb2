"""What commands recommend by the committed frontier is what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lab
from lab.fits.committed_figures import shown
from securetm.plans.profiles import profile_names
from securetm.reports import committed_costs
from securetm.reports.committed_costs import frontier_says
from securetm.reports.profiles import explain

COMMITTED = Path(lab.__file__).parent / "results" / "reproduce-private-frontier.json"


@pytest.mark.parametrize("profile", ["dp-central", "dp-distributed", "dp-local"])
def test_the_recommendation_has_the_figures_of_the_result(profile: str) -> None:
    rows = [
        row
        for row in json.loads(COMMITTED.read_text("utf-8"))["rows"]
        if (row["corpus"], row["topics"], row["judging"]) == ("20 Newsgroups", 20, 0.1)
    ]
    said = explain(profile)["recommended"]
    mine = [row for row in rows if (row["model"], row["profile"]) == ("lda-vi, public start", profile) and row["epsilon"] >= 1]
    assert len(mine) == 3
    assert all(f"{row['f1']:.2f} at epsilon {row['epsilon']:g}" in said for row in mine)
    control = next(row for row in rows if row["model"] == "public start, no document")
    assert f"{control['f1']:.2f} on topics that no document made" in said


def test_a_profile_that_was_not_tried_has_no_figures() -> None:
    tried = {"dp-central", "dp-distributed", "dp-local"}
    assert {name for name in profile_names() if frontier_says(name)} == tried


def test_what_the_product_shows_is_what_was_committed() -> None:
    assert json.loads(Path(committed_costs.__file__).with_name("committed_figures.json").read_text("utf-8")) == shown()
