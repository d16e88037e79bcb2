"""`securetm budget forecast` answers from public numbers alone; a run under a budget says the same first, and keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from securetm.accounting.calculator.persons import People
from securetm.agreement import Agreement, agree
from securetm.cli.budget_profile import ProfileQuestion
from securetm.errors import BadSetting
from securetm.federation.run_forecast import forecast_of, forecast_record, why_no_forecast
from securetm.forecast import Verdict
from securetm.forecast.best_settings import MODELS, OTHERS
from securetm.forecast.forecast_setting import BY_MOMENTS
from securetm.plan_reading import plan_from_tables
from securetm.reports.forecast_sentences import after_a_run, before_a_run

from .calculated import budget, found

ASKED = "forecast --documents 20000 --epsilon 3 --profile dp-central"


def plan(privacy: Mapping[str, object] | None = None, **training: object) -> Agreement:
    spent = {"epsilon": 3.0, **(privacy or {})}
    tables = {"profile": "dp-central", "model": {"name": "lda-vi"}, "privacy": spent, "training": training}
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
    assert len(answer["models"]) == len(MODELS) + len(OTHERS)
    assert answer["corpora"]


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("--documents 0", "documents"),
        ("--documents 100 --persons 200", "--persons"),
        ("--documents 100 --persons 10 --documents-per-person 2", "give at least 10"),
        ("--documents 100 --documents-per-person 500", "--documents-per-person"),
        ("--documents 100 --unit people", "known: document, person"),
        ("--documents 100 --start moment", "did you mean moments?"),
        ("--documents 100 --model ldavi", "did you mean lda-vi?"),
        ("--documents 100 --document-length 0", "--document-length"),
        ("--documents 100 --topics 0", "--topics"),
        ("--documents 100 --epsilon -1", "--epsilon"),
        ("--documents 100 --delta 2", "--delta"),
        ("--documents 100 --parties 2", "dp-distributed"),
        ("--documents 100 --profile masked", "no privacy budget"),
    ],
)
def test_nonsense_is_refused(bad: str, named: str) -> None:
    said = budget(f"forecast {bad}")
    assert said.code == 2
    assert named in " ".join(said.err.split())
    assert "hint" in said.err


def test_persons_are_named_as_in_all_commands_of_the_calculator() -> None:
    by_unit = found("forecast --documents 20000 --unit person --documents-per-person 5 --document-length 30")
    by_persons = found("forecast --documents 20000 --persons 4000 --length 30")
    assert by_unit == by_persons
    assert (by_unit["unit"], by_unit["setting"]["documents_per_person"]) == ("person", 5.0)
    documents = found("forecast --documents 20000 --unit document --persons 4000")
    assert (documents["unit"], documents["setting"]["documents_per_person"]) == ("document", 1.0)


def test_short_texts_are_forecast_as_a_run_of_them_begins() -> None:
    short, told = found(f"{ASKED} --document-length 5"), plan(documents=20_000, document_length=5.0)
    one = forecast_of(told, 5)
    assert one is not None
    assert short["setting"]["start"] == one.setting.start == BY_MOMENTS


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


def test_a_budget_of_persons_is_forecast_where_the_plan_says_how_many_there_are() -> None:
    counts = {"documents": 20_000, "document_length": 30.0}
    silent, told = plan(privacy={"unit": "person"}, **counts), plan(privacy={"unit": "person"}, persons=4_000, **counts)
    assert forecast_of(silent, 5) is None
    assert "training.persons" in before_a_run(None, why_no_forecast(silent))
    one = forecast_of(told, 5)
    assert one is not None
    assert one.setting.documents_per_person == 5.0
    assert told.plan.training.rounds == plan(documents=4_000).plan.training.rounds  # a sum has a row for each person
    for bad in ({"persons": 30_000}, {"persons": 4_000, "privacy": {"unit": "document"}}):
        with pytest.raises(BadSetting, match="persons"):
            plan(**{**counts, **bad})
