"""Where a training on short texts begins follows from public numbers, and from nothing else."""

from __future__ import annotations

import json
from math import sqrt
from typing import Any

import pytest

from lab.fits.forecast import GENERAL_WORDS
from lab.fits.forecast_trials import MESSAGES, PAPERS, TITLES
from lab.measuring import RESULTS
from lab.reproduce.contenders import PUBLIC, STARTED
from securetm.plans.recommend import plan_from_tables
from securetm.plans.rules import (
    START_RULE,
    asks_first,
    noise_of_one_round,
    totals_for,
    totals_rule,
)
from securetm.plans.schema import MOMENTS

RESULT = RESULTS / "reproduce" / "usefulness-forecast.json"
SHORTEST, ASKED_FROM = START_RULE.value["longest"], START_RULE.value["from_signal"]
AFTER_PAIRS = totals_rule(plain=False, after_pairs=True).value
MANY, FEW = 12_000, 2_000


def plan(profile: str = "dp-central", model: str = "lda-vi", **training: Any) -> Any:
    privacy = {"epsilon": 1.0} if profile.startswith("dp-") else {}
    tables = {"profile": profile, "model": {"name": model}, "training": training, "privacy": privacy}
    return plan_from_tables({**tables, "vocabulary": {"max_words": 1_000}}, "a test")


def test_short_texts_that_stand_out_of_the_noise_begin_at_topics_of_moments() -> None:
    begun = plan(documents=MANY, document_length=5.0)
    assert (begun.training.start, begun.training.start_share) == (MOMENTS, 0.5)
    assert begun.training.rounds < plan(documents=MANY).training.rounds  # half of the budget is spent before
    assert plan_from_tables(json.loads(json.dumps(begun.tables())), "again") == begun


@pytest.mark.parametrize("model", ["lda", "sentence-lda"])
def test_sampled_topics_begin_so_too_and_are_asked_a_few_times(model: str) -> None:
    """A hundred rounds of noise would drown them; without a budget they are asked as ever."""
    told = plan("dp-central", model, documents=MANY, document_length=5.0)
    assert (told.training.start, told.training.rounds) == ("moments", plan(documents=MANY, document_length=5.0).training.rounds)
    assert [plan(profile, model).training.rounds for profile in ("dp-central", "masked")] == [5, 100]


def test_words_totals_weigh_by_the_noise_that_the_first_question_leaves() -> None:
    """Rounds have the budget that the question before them leaves, so their totals stand out of more noise."""
    noise = noise_of_one_round(1.0, 1e-5)
    begun = [plan(documents=MANY, start="moments", start_share=share, vectors="none") for share in (0.1, 0.4, 0.5)]
    told = [totals_for(MANY, 20, 1_000, noise / sqrt(1 - share), after_pairs=True) for share in (0.1, 0.4, 0.5)]
    assert [one.model.settings["totals"] for one in begun] == pytest.approx(told, rel=0.01)
    assert told[0] == 0 < AFTER_PAIRS["least"] < told[1] < told[2] < AFTER_PAIRS["most"]  # pairs tell totals well enough
    assert totals_for(MANY, 20, 1_000, noise / sqrt(0.9)) > 0  # where none were asked for, totals weigh already
    assert plan(start="moments", vectors="none").model.settings["totals"] == 0  # nobody said how many documents there are


@pytest.mark.parametrize(
    "training",
    [
        {"documents": MANY},
        {"document_length": 5.0},
        {"documents": MANY, "document_length": SHORTEST + 0.1},
        {"documents": FEW, "document_length": 5.0},
        {"documents": MANY, "document_length": 5.0, "start": "plain"},
        {"documents": MANY, "document_length": 5.0, "start": "public", "vectors": "glove"},
    ],
)
def test_otherwise_a_plan_begins_as_it_did(training: dict[str, Any]) -> None:
    assert plan(**training).training.start == training.get("start", "")


@pytest.mark.parametrize(("profile", "model"), [("masked", "lda-vi"), ("dp-central", "nmf"), ("dp-central", "moments")])
def test_no_budget_and_no_other_model_asks_for_them(profile: str, model: str) -> None:
    assert plan(profile, model, documents=MANY, document_length=5.0).training.start == ""


def test_a_budget_of_persons_is_for_more_than_one_text() -> None:
    told = {"documents": MANY, "persons": MANY, "document_length": 5.0}
    tables = {"profile": "dp-central", "training": told, "privacy": {"unit": "person", "epsilon": 8.0}}
    assert plan_from_tables(tables, "a test").training.start == ""


def test_more_noise_needs_more_documents() -> None:
    """The rule turns at one number of documents, which grows with the noise."""

    def least(noise: float) -> int:
        return next(n for n in range(100, 10**6, 100) if asks_first(n, 5.0, 20, 1_000, noise))

    assert least(1.0) < least(4.0)
    assert least(4.0) == pytest.approx(4.0 * ASKED_FROM * (20 * 1_000) ** 0.5, abs=100)
    assert not asks_first(10**6, 0.0, 20, 1_000, 1.0)


def test_on_the_committed_trials_it_gains_and_costs_little() -> None:
    """Where the rule asks first, `lda-vi` predicts held-out words of texts better than from a public start."""
    rows = json.loads(RESULT.read_text("utf-8"))["rows"]
    tried = {(one["corpus"], one["documents"], one["epsilon"], one["model"]): one for one in rows if _usual(one)}
    begun = [one for one in tried.values() if one["model"] == PUBLIC and _asked(one)]
    pairs = [(one, tried.get((one["corpus"], one["documents"], one["epsilon"], STARTED))) for one in begun]
    gains = {(one["corpus"], one["epsilon"]): other["held_out"] - one["held_out"] for one, other in pairs if other}
    assert {corpus for corpus, _ in gains} == {TITLES, PAPERS, MESSAGES}
    assert [name for name, gain in gains.items() if gain < 0] == [(MESSAGES, 3.0)]  # the page on models says so
    assert min(gains.values()) > -0.05
    assert sum(gains.values()) / len(gains) > 0.07


def _usual(row: Any) -> bool:
    own_words = not row["corpus"].endswith(GENERAL_WORDS)
    return own_words and row["epsilon"] and (row["words"], row["topics"], row["radius"]) == (1_000, 20, 2.0)


def _asked(row: Any) -> bool:
    return asks_first(row["documents"], row["length"], row["topics"], row["words"], noise_of_one_round(row["epsilon"], 1e-5))
