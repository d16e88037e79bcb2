"""What `securetm run` says of a model's use, before it shows topics, and of a run that trained nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..federation.conftest import FIVE, SHARED
from ..quick_part import quick
from .conftest import Said, securetm

LDA = ["--corpus", "documents.jsonl", "--partition", "column", "--model", "lda", "--topics", "3"]
ALL = ["--set", "vocabulary.most_candidates=500", "--set", "vocabulary.min_documents=2", "--set", "vocabulary.max_share=1.0"]


def flat(said: Said) -> str:
    return " ".join((said.out + said.err).split())


def listed(here: Path) -> None:
    words = {*SHARED, *(word for words in FIVE.values() for word in words)}
    (here / "listed.txt").write_text("\n".join(sorted(words)), "utf-8")


def test_a_useful_model_is_called_so_before_its_topics(here: Path) -> None:
    said = securetm("run", *LDA, *ALL, "--rounds", "20", "--no-comparison", "--out", "runs/useful")
    assert said.code == 0, said.err
    assert flat(said).index("The model is of use: it predicts") < flat(said).index("Topics of the shared model")
    assert "next: securetm topics" in flat(said)
    assert "each party finds alone" not in flat(said)
    kept = json.loads((here / "runs/useful/result.json").read_text("utf-8"))
    assert (kept["useful"], kept["comparison"]["made"]) == (True, False)


LISTED = ("--vocabulary", "listed.txt", "--public", "vocabulary=made up")


@pytest.mark.slow
@pytest.mark.parametrize(("profile", "code"), quick([("dp-local", 1), ("open", 0)], ("dp-local", 1)))
def test_a_budget_spent_on_less_than_a_guess_ends_as_a_gap(profile: str, code: int, here: Path) -> None:
    """Nobody is invited to use such a model; without a budget, nothing was lost by a trial."""
    listed(here)
    long = ["--set", "model.learning_rate=30", "--set", "model.hidden=8", "--set", "training.held_out=0.4"]
    plan = ["run", "plan.toml", "--topics", "3", "--rounds", "8", *long, "--no-comparison", *LISTED]
    budget = ["--epsilon", "1"] if code else []
    said = securetm(*plan, *budget, "--profile", profile, "--out", f"runs/worse-{profile}", "--json")
    assert said.code == code, said.err
    assert said.json["useful"] is False
    assert said.json["baseline"]["worse_than_uniform"] is True
    assert "The model is of no use: it predicts" in flat(said)
    assert "more documents" in flat(said)
    assert "next:" not in flat(said)


@pytest.mark.slow
def test_a_run_without_a_round_shows_no_topics_and_keeps_no_model(here: Path) -> None:
    listed(here)
    settings = [*LDA, *LISTED, "--rounds", "1", "--profile", "iftm", "--ledgers", "nothing"]
    assert securetm("run", *settings, "--epsilon", "8", "--out", "runs/noise-bought").code in (0, 1)
    said = securetm("run", *settings, "--epsilon", "7", "--out", "runs/noise-unpaid", "--json")
    assert said.code == 3
    assert (said.json["rounds"], said.json["topics"], said.json["useful"]) == (0, [], False)
    assert "Topics of the shared model" not in flat(said)
    assert "Kept in" not in flat(said)
    assert "next:" not in flat(said)
    assert "no round was trained" in flat(said)
    assert securetm("topics", "runs/noise-unpaid").code == 2
