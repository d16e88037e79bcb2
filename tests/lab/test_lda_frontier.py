"""The frontier of privacy and utility of LDA: a row is a federation with a ledger, and what was committed is whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lab
from lab.reproduce.noise_frontiers import FORMS, LDA, MODELS, Frontier, nothing_learned
from securetm.corpus.corpus import Corpus

COMMITTED = Path(lab.__file__).parent / "results" / "reproduce-lda-frontier.json"
SUBJECTS = ("river water lake boat fish", "court judge trial law jury", "tensor matrix vector gradient loss")


@pytest.fixture
def little() -> Frontier:
    """Three subjects in place of twenty newsgroups, and a public list of their words."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(SUBJECTS[n % 3].split(), 12)) for n in range(600)]
    corpus = Corpus.from_strings(texts, labels=[str(n % 3) for n in range(600)], name="little")
    words = tuple(sorted(" ".join(SUBJECTS).split()))
    models = {name: {**settings, "n_topics": 3} for name, settings in MODELS.items()}
    frontier = Frontier(replace(LDA, models=models, rounds=4), corpus, len(words))
    frontier.__dict__["words"] = words  # the list that is found in other corpora, where these lie beside the checkout
    return frontier


@pytest.mark.slow
@pytest.mark.parametrize("model", list(MODELS))
def test_a_row_is_a_federation_that_paid_for_what_it_learned(model: str, little: Frontier) -> None:
    bare, paid = (little.row((model, form, epsilon), 0) for form, epsilon in (("masked", None), ("dp-central", 8.0)))
    assert bare["spent"] is None
    assert bare["noise"] == 0
    assert 7 < paid["spent"] <= 8.0
    assert paid["noise"] > 0.5
    assert (bare["rounds"], paid["rounds"]) == (4, 4)
    for row in (bare, paid):
        assert row["f1"] > 0.45  # after four rounds; chance is a third
        assert row["held_out"] > np.log(1 / 15) - 0.05  # hardly below that of every word alike


def test_rows_are_means_over_the_seeds(little: Frontier) -> None:
    figures = dict.fromkeys(("diversity", "held_out", "f1"), 0.5)
    cases = [(model, *more) for model in MODELS for more in (("masked", None), ("dp-local", 1.0))]
    runs = [
        {
            "model": model,
            "profile": form,
            "epsilon": epsilon,
            "seed": seed,
            "noise": 2.0,
            "rounds": 4,
            "spent": 0.9 + seed / 100,
        }
        | {"npmi": 0.1 * seed, **figures}
        for seed in (0, 1)
        for model, form, epsilon in cases
    ]
    result = little.found(runs, cases)
    assert result["seeds"] == 2
    assert [row["npmi"] for row in result["rows"]] == [0.05] * 4
    assert {row["npmi_spread"] for row in result["rows"]} == {0.1}
    assert [row["spent"] for row in result["rows"]] == [None, 0.91] * 2
    assert result["rows"][1]["noise_in_sum"] == round(2.0 * 5**0.5, 3)  # each of five parties adds all of it
    assert nothing_learned(little)["held_out"] == pytest.approx(np.log(1 / 15), abs=0.1)


def test_the_committed_frontier_is_whole() -> None:
    result = json.loads(COMMITTED.read_text("utf-8"))
    cases = [(row["model"], row["profile"], row["epsilon"]) for row in result["rows"]]
    assert cases == LDA.cases((1.0, 3.0, 8.0))
    assert len(result["runs"]) == result["seeds"] * len(cases)
    paid = [run for run in result["runs"] if run["epsilon"]]
    assert all(0.9 * run["epsilon"] < run["spent"] <= run["epsilon"] for run in paid)


def test_what_survives_is_said_with_figures() -> None:
    """Variational LDA keeps topics at epsilon 1 where noise is central; what counts keep is less, and less still locally."""
    result = json.loads(COMMITTED.read_text("utf-8"))
    npmi = {(row["model"], row["profile"], row["epsilon"]): row["npmi"] for row in result["rows"]}
    nothing = result["nothing_learned"]["npmi"]
    for form in ("dp-central", "dp-distributed"):
        assert npmi["lda-vi", form, 8.0] > 0.8 * npmi["lda-vi", "masked", None]
        assert npmi["lda-vi", form, 1.0] > nothing + 0.1
    assert all(npmi["lda-vi", form, 8.0] > npmi["lda", form, 8.0] for form in FORMS)
