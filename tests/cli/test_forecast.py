"""`securetm budget forecast` answers from public numbers alone; a run under a budget says the same first, and keeps it."""

from __future__ import annotations

import json

import pytest

from securetm.accounting.calculator.persons import People
from securetm.agreement import agree
from securetm.cli.budget_profile import ProfileQuestion
from securetm.federation.run_forecast import forecast_of, forecast_record, why_no_forecast
from securetm.forecast import Verdict
from securetm.plan_reading import plan_from_tables
from securetm.reports.forecast_sentences import after_a_run, before_a_run

from .calculated import budget, found

ASKED = "forecast --documents 20000 --epsilon 3 --profile dp-central"


def plan(**training: object) -> object:
    tables = {"profile": "dp-central", "model": {"name": "lda-vi"}, "privacy": {"epsilon": 3.0}, "training": training}
    return agree(plan_from_tables({**tables, "vocabulary": {"max_words": 1_000}}, "a test"))


def test_it_says_the_verdict_each_model_and_what_would_be_best() -> None:
    said = budget(ASKED)
    assert said.code == 0
    for word in ("Forecast:", "plain", "moments", "Most is expected of", "Fitted to"):
        assert word in said.out


def test_its_record_names_unit_bands_and_corpora() -> None:
    answer = found(f"{ASKED} --persons 4000")
    assert (answer["unit"], answer["epsilon"], answer["setting"]["documents_per_person"]) == ("person", 3.0, 5.0)
    assert answer["verdict"] in {one.value for one in Verdict}
    assert len(answer["models"]) == 3
    assert answer["corpora"]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("--documents 0", "documents"),
        ("--documents 100 --persons 200", "--persons"),
        ("--documents 100 --persons 10 --documents-per-person 2", "--persons"),
        ("--documents 100 --profile masked", "no privacy budget"),
    ],
)
def test_nonsense_is_refused(bad: str, named: str) -> None:
    said = budget(f"forecast {bad}")
    assert said.code == 2
    assert named in said.err


def test_a_run_is_forecast_only_where_its_plan_states_how_many_documents_there_are() -> None:
    silent, told = plan(), plan(documents=20_000, document_length=30.0)
    assert forecast_of(silent, 5) is None
    assert "training.documents" in before_a_run(None, why_no_forecast(silent))
    one = forecast_of(told, 5)
    assert one is not None
    assert one.setting.documents == 20_000
    assert one.held_out is not None
    assert "before anything is spent" in before_a_run(one, "")
    kept = json.loads(
        json.dumps(forecast_record(told, 5, {"useful": True, "baseline": {"gain": {"value": one.held_out.middle}}}))
    )
    assert kept["came_true"] == {"held_out": one.held_out.middle, "inside": True, "useful": True}
    assert "inside the band" in after_a_run(kept)
    assert forecast_record(silent, 5, {}) == {"forecast": None, "came_true": None}


def test_the_calculator_of_a_profile_shows_it_and_the_words_that_a_run_would_list() -> None:
    run = ProfileQuestion("dp-central", epsilon=3.0, people=People(documents=20_000), words=1_000).run()
    assert run.forecast is not None
    assert "the number of words open" in run.forecast_note
