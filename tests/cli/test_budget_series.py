"""`securetm budget series`: the runs of a ledger as one report, and when its budget ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from dp_accounting import GaussianDpEvent

from securetm.accounting.ledger import Ledger
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Unit

from ..federation.conftest import keys as trial_keys  # noqa: F401 - a fixture
from ..federation.joined import NAMES, PLAN, Organisations, trained
from .conftest import securetm

ABOUT = {"profile": "dp-central", "digest": "00"}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger after five yearly runs."""
    made = tmp_path / "notes.ledger"
    for year in range(2026, 2031):
        monkeypatch.setattr("securetm.accounting.ledger.ledger._now", lambda year=year: f"{year}-03-01T00:00:00+00:00")
        with Ledger.open(made, "hospital-a", Budget(Unit.PERSON, 8.0, 1e-6)) as ledger:
            ledger.charge(f"oncology {year}", Spend(GaussianDpEvent(6.0)), ABOUT)
    return made


def test_the_sixth_run_is_seen_to_fit_or_not(path: Path, tmp_path: Path) -> None:
    said = securetm("budget", "series", str(path), "--json", "--html", str(tmp_path / "series.html"))
    assert said.code == 0, said.err
    (one,) = said.json["series"]
    assert [run["run"] for run in one["runs"]] == [f"oncology {year}" for year in range(2026, 2031)]
    together = [run["together"] for run in one["runs"]]
    assert together == sorted(together)
    assert one["left"] == pytest.approx(8.0 - together[-1])
    assert one["ends"].startswith(str(2030 + one["further_runs"] + 1))
    with Ledger.open(path, "hospital-a", Budget(Unit.PERSON, 8.0, 1e-6)) as ledger:
        admitted = 0
        while ledger.fits("later", Spend(GaussianDpEvent(6.0)), admitted + 1):
            admitted += 1
    assert one["further_runs"] == admitted  # the ledger itself counts so
    assert "is left after 5 runs" in (tmp_path / "series.html").read_text("utf-8")


def test_a_pace_may_be_said_and_a_run_without_a_bound_ends_the_count(path: Path) -> None:
    twice = securetm("budget", "series", str(path), "--per-year", "2", "--json").json["series"][0]
    assert twice["days_between_runs"] == pytest.approx(182.625)
    with Ledger.open(path, "hospital-a", None) as ledger:
        ledger.release("oncology open", "nothing bounds it", {"profile": "masked", "digest": "01"})
    after = securetm("budget", "series", str(path), "--json").json["series"][0]
    assert (after["further_runs"], after["runs"][-1]["together"]) == (None, None)
    assert "oncology open had no bound" in after["said"]


def test_of_a_home_the_quality_of_each_run_is_shown(trial_keys: Path, tmp_path: Path) -> None:  # noqa: F811
    made = Organisations.of(trial_keys, tmp_path / "all", PLAN)
    _, joined = trained(made, tmp_path / "coordinator")
    quality = joined.reports[NAMES[0]]["quality"]
    said = securetm("budget", "series", str(made.home(NAMES[0])), "--json")
    (run,) = said.json["series"][0]["runs"]
    assert (run["perplexity"], run["npmi"]) == (quality["held_out"], quality["npmi"])
    shown = " ".join(securetm("budget", "series", str(made.home(NAMES[0]))).out.split())
    assert f"{quality['held_out']:,.1f}" in shown
