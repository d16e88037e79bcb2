"""`securetm budget forecast` answers from public numbers alone; a run under a budget says the same first, and keeps it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

import pytest

from securetm.errors import BadSetting
from securetm.federation.budget.forecast import forecast_of, forecast_record, why_no_forecast
from securetm.plans.agreement import Agreement, agree
from securetm.plans.forecast import MODELS, OTHERS, Verdict
from securetm.plans.recommend import plan_from_tables
from securetm.reports.forecast import after_a_run, before_a_run

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
    for gain, word in ((one.held_out.high + 0.1, "better"), (one.held_out.low - 0.1, "worse")):
        other = json.loads(json.dumps(forecast_record(told, 5, {"useful": True, "baseline": {"gain": {"value": gain}}})))
        assert f"which is {word} than was forecast" in after_a_run(other)
    near = {"held_out": {"low": 0.0, "high": 0.261}}, {"held_out": 0.264, "inside": False}
    said = after_a_run({"forecast": near[0], "came_true": near[1]})
    assert "perplexity 0.770 to 1.000 times" in said
    assert "It came to 0.768 times" in said
    assert forecast_record(silent, 5, {}) == {"forecast": None, "came_true": None}


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


# ---- one rule ----------------------------------------------------------------------------------------------------------


def test_the_run_that_is_printed_is_forecast_the_same() -> None:
    told = found("forecast --documents 30000 --epsilon 3 --profile dp-central --document-length 30 --vocabulary english")
    settings = dict(
        shlex.split(told["run"])[n + 1].split("=") for n, word in enumerate(shlex.split(told["run"])) if word == "--set"
    )
    words = shlex.split(told["run"])
    named = ("--topics", "--rounds", "--epsilon", "--start", "--model")
    options = {name: words[words.index(name) + 1] for name in named if name in words}
    tables = {
        "profile": "dp-central",
        "model": {"name": options["--model"], "n_topics": int(options["--topics"])},
        "training": {
            "rounds": int(options["--rounds"]),
            **({"start": options["--start"]} if "--start" in options else {}),  # `moments` has none
            "documents": int(settings["training.documents"]),
            "document_length": float(settings["training.document_length"]),
        },
        "vocabulary": {"source": "file", "file": "english", "max_words": int(settings["vocabulary.max_words"])},
        "privacy": {"epsilon": float(options["--epsilon"]), "delta": float(settings["privacy.delta"])},
        "federation": {"parties": int(settings["federation.parties"])},
    }
    run = forecast_of(agree(plan_from_tables(tables, "a test")), 5)
    assert run is not None
    assert run.verdict.value == told["verdict"]
    assert run.record()["held_out"] == pytest.approx(told["held_out"], abs=0.01)


def test_a_length_that_changes_the_answer_is_warned_of() -> None:
    few = found("forecast --documents 3000 --epsilon 3 --profile dp-central")
    assert [one["length"] for one in few["by_length"]] == [5.0, 30.0, 150.0]
    verdicts = {one["verdict"] for one in few["by_length"]}
    said = " ".join(budget("forecast --documents 3000 --epsilon 3 --profile dp-central").out.split())
    assert ("The length changes the answer" in said) is (len(verdicts) > 1)
    assert "by_length" not in found(f"{ASKED} --document-length 30")
    long = " ".join(budget("forecast --documents 20000 --document-length 400").out.split())
    assert "Texts with 400 words of the list were not tried" in long
