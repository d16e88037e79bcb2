"""`securetm budget plan`: a real ledger admits exactly the runs that were planned, and what cannot be is refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.ledger import BudgetExhausted
from securetm.cli.budget_plan import PlanQuestion
from securetm.cli.budget_runs import one_run

from .calculated import budget, found, write_ledger

SMALL = "plan --profile dp-central --words public --vocabulary-size 100 --rounds 2"


def test_a_real_ledger_admits_the_planned_runs_and_no_more(tmp_path: Path) -> None:
    question = PlanQuestion(profile="dp-central", words="once", vocabulary_size=100, rounds=2, years=3, unit="person")
    *_, planned = one_run(question)
    noise = planned.least_noise(3)
    assert planned.spending.first  # the first run pays for its words
    with Ledger.open(tmp_path / "north.ledger", "north", planned.budget) as ledger:
        for run in range(3):
            spends = (*(planned.spending.first if run == 0 else ()), *planned.spending.at(noise))
            for spend in spends:
                ledger.charge(f"run {run}", spend, {"profile": "dp-central"})
            assert ledger.spent().epsilon == pytest.approx(planned.after(run + 1, noise).spent().epsilon)
        (once,) = planned.spending.at(noise)
        with pytest.raises(BudgetExhausted):
            ledger.charge("run 3", replace(once, count=1), {"profile": "dp-central"})
        assert ledger.spent().epsilon > 0.98 * planned.budget.epsilon  # no more noise than the ledger asks for


@pytest.mark.slow
def test_runs_share_a_budget_better_than_by_dividing_it() -> None:
    result = found(f"{SMALL} --years 4 --epsilon 4 --delta 1e-6 --documents 50000 --persons 10000 --missing 0")
    assert (result["unit"], result["lasts_runs"], len(result["runs"])) == ("person", 4, 4)
    assert result["epsilon_per_run"] > 4 / 4
    spent, fixed = ([run[name] for run in result["runs"]] for name in ("spent", "fixed_in_advance"))
    assert spent == sorted(spent)
    assert all(later <= held for later, held in zip(fixed, spent, strict=True))
    assert spent[-1] <= 4
    assert fixed[-1] == pytest.approx(result["epsilon"])
    assert "the runs over the same documents are the 4 planned" in result["statement"]
    assert result["plots"][0]["lines"][2]["name"] == "budget"


def test_given_what_a_run_spends_the_plan_says_when_the_budget_ends() -> None:
    result = found(f"{SMALL} --years 6 --epsilon 4 --delta 1e-6 --noise 3")
    lasts = result["lasts_runs"]
    assert 0 < lasts < 6
    assert [run["admitted"] for run in result["runs"]] == [True] * lasts + [False] * (6 - lasts)
    assert f"in year {lasts + 1}" in result["warnings"][0]
    assert found(f"{SMALL} --years {lasts} --epsilon 4 --delta 1e-6")["noise"] <= 3


def test_audits_that_train_count_as_runs_and_others_do_not() -> None:
    alone, recorded = PlanQuestion(years=2), PlanQuestion(years=2, audits_per_year=4)
    assert recorded.in_one_ledger == alone.in_one_ledger == 2
    trained = PlanQuestion(years=2, audits_per_year=1, runs_per_audit=3)
    assert [run["purpose"] for run in trained.runs()] == ["training", *["audit that trains"] * 3] * 2


def test_retired_documents_make_room_for_others() -> None:
    schedule = PlanQuestion(years=5, retire_after=2)
    assert schedule.in_one_ledger == 2
    assert [(run["data_set"], run["number"]) for run in schedule.runs()] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]


def test_a_plan_goes_on_from_what_a_ledger_holds(tmp_path: Path) -> None:
    write_ledger(tmp_path / "north.ledger", "first")
    result = found(f"{SMALL} --years 2 --ledger {tmp_path / 'north.ledger'}")
    assert result["budget"] == {"epsilon": 3.0, "delta": 1e-5}
    fresh = found(f"{SMALL} --years 2 --epsilon 3 --delta 1e-5")
    assert result["noise"] > fresh["noise"]


@pytest.mark.slow
def test_how_often_one_can_train_and_still_have_a_model_of_use_follows_from_the_size_of_the_corpus() -> None:
    """The forecast is asked for each number of runs: with more of them each has less of the budget."""
    most = {}
    asked = "plan --profile dp-central --words public --vocabulary-size 250"
    for documents in (4_000, 6_000):
        result = found(f"{asked} --documents {documents} --document-length 60 --years 60")
        often, rows = result["how_often"], result["tables"][0]["rows"]
        most[documents] = often["of_use"]
        assert 1 <= often["of_use"] < often["planned"] == 60 <= often["may_be"] <= often["most_asked"]
        verdicts = {int(row[0].replace(",", "")): row[2].partition(" (")[0] for row in rows}
        assert verdicts[often["of_use"]] == "of use"
        assert verdicts[often["of_use"] + 1] == verdicts[60] == "cannot say"
        assert any(f"up to {often['of_use']} trainings" in one for one in result["warnings"])
    assert most[6_000] > most[4_000]
    unknown = found(f"{asked} --documents 6000 --years 2")
    assert unknown["how_often"]["of_use"] < most[6_000]  # of documents of a known length more can be said
    silent = found(f"{SMALL} --years 2")
    assert silent["how_often"] is None
    assert any("how often you can train, is said if you give --documents" in one for one in silent["notes"])


def test_a_file_says_the_same_as_options(tmp_path: Path) -> None:
    path = tmp_path / "years.toml"
    path.write_text('profile = "dp-central"\nwords = "public"\nvocabulary_size = 100\nrounds = 2\nyears = 2\n', "utf-8")
    assert found(f"plan {path} --epsilon 4")["noise"] == found(f"{SMALL} --years 2 --epsilon 4")["noise"]
    path.write_text('profil = "dp-central"\n', "utf-8")
    said = budget(f"plan {path}")
    assert said.code == 2
    assert "profil" in said.err
    assert "profile" in said.err
