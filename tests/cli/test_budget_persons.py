"""`securetm budget` persons first: what a person is promised, and what cannot be is refused by name, never replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from securetm.accounting.calculator.persons import grown
from securetm.plans.recommend import plan_from_tables

from .calculated import budget, found

SGD = "--documents 1000 --batch 100 --epochs 1 --delta 1e-5"
PROFILE = "profile dp-central --vocabulary-size 500 --vocabulary english --documents 100000"


def test_a_budget_of_documents_says_what_a_person_is_promised() -> None:
    result = found(f"dp-sgd {SGD} --noise 4 --unit document --documents-per-person 5")
    rows = {row["rows"]: row for row in result["persons"]["rows"]}
    by_events, theorem = rows["a row for each document"], rows["the same, by k x epsilon"]
    assert result["unit"] == "document"
    assert rows["a row for each person"]["epsilon"] == result["epsilon"]
    assert theorem["epsilon"] == pytest.approx(5 * result["epsilon"])
    assert theorem["delta"] == pytest.approx(grown(result["epsilon"], 1e-5, 5).delta)
    assert theorem["delta"] > 5e-5
    assert by_events["delta"] == 1e-5
    assert result["tables"][0]["title"] == "What a person with 5 documents is promised"
    assert any("A person with 5 of them has epsilon = " in warning for warning in result["warnings"])


@pytest.mark.slow
def test_where_persons_are_named_every_answer_is_per_person() -> None:
    result = found(f"dp-sgd {SGD} --noise 4 --documents-per-person 5")
    assert result["unit"] == "person"
    assert "any one person was trained with" in result["statement"]
    assert "all documents of a person lie with one party" in result["statement"]
    assert result["people"]["units"] == 200
    assert found(f"dp-sgd {SGD} --noise 4")["epsilon"] == result["epsilon"]  # the noise is that over the bound on a row


def test_delta_is_judged_by_persons() -> None:
    result = found("dp-sgd --documents 100000 --batch 1000 --epochs 1 --noise 4 --delta 1e-4 --persons 9000")
    assert not any("is not below" in warning for warning in result["warnings"])
    result = found("dp-sgd --documents 100000 --batch 1000 --epochs 1 --noise 4 --delta 1e-4 --persons 20000")
    assert "delta = 0.0001 is not below 1 / persons" in result["warnings"][0]


def test_a_profile_asks_what_a_run_asks() -> None:
    """Rounds and noise that nobody gives are those of a run, by the number of persons where the rows are theirs."""
    result = found(f"{PROFILE} --persons 500 --parties 4")
    plan = plan_from_tables(
        {
            "profile": "dp-central",
            "vocabulary": {"source": "file", "file": "english", "max_words": 500},
            "model": {"name": "lda-vi"},
            "training": {"documents": 500},
        },
        "the test",
    )
    assert result["settings"]["rounds"] == result["rounds"] == plan.training.rounds
    assert result["unit"] == "person"
    assert result["noise"] == result["suggested"]["noise"]
    assert result["budget"]["lasts_rounds"] >= result["rounds"]
    assert 0.99 * 8 < result["epsilon"] <= 8


@pytest.mark.slow
def test_a_profile_takes_the_numbers_that_a_plan_takes() -> None:
    result = found(f"{PROFILE} --rounds 3 --epsilon 2 --delta 1e-7 --unit person")
    assert (result["rounds"], result["delta"], result["budget"]["epsilon"]) == (3, 1e-7, 2)
    assert 1.9 < result["epsilon"] <= 2
    noisier = found(f"{PROFILE} --rounds 3 --noise 40 --unit person")
    assert noisier["noise"] == 40
    assert noisier["epsilon"] < 1


@pytest.mark.slow
def test_noise_is_found_for_an_epsilon_and_shown_in_shares() -> None:
    result = found(f"dp-sgd {SGD} --epsilon 2 --parties 10 --missing 2 --colluding 3")
    assert result["solved"]["target"] == 2
    shares = result["tables"][-1]
    assert shares["title"] == "The noise in shares"
    assert "8 of 10 parties must remain" in shares["caption"]
    assert found(f"compare {SGD} --epsilon 2 --parties 10 --missing 2")["epsilon"] <= 2


@pytest.mark.slow
def test_a_corpus_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    rows = [{"text": "a cough in the chest", "patient": n % 4} for n in range(18)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    result = found(f"dp-sgd --corpus {path} --person patient --batch 9 --epochs 1 --noise 8 --delta 1e-3")
    assert (result["people"]["documents"], result["people"]["persons"]) == (18, 4)
    assert result["people"]["documents_per_person"] == 5
    assert any("counted in your corpus" in note for note in result["notes"])
    for more, said in {
        "--documents 3": "cannot be given beside --corpus",
        "--unit person": "has no column called person",
    }.items():
        refused = budget(f"dp-sgd --corpus {path} --batch 9 --epochs 1 --noise 8 --delta 1e-3 {more}")
        assert refused.code == 2
        assert said in refused.err
