"""What federating is worth to parties with different subjects: the committed figures hold the order they are quoted for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lab
from lab.reproduce.iftm import MODELS, forms, reproduce
from lab.research_corpora import by_subject, newsgroups_file
from securetm.corpus.corpus import Corpus

COMMITTED = Path(lab.__file__).parent / "results" / "reproduce-iftm.json"


def test_every_form_predicts_everybodys_words_better_than_any_party_alone() -> None:
    rows = json.loads(COMMITTED.read_text("utf-8"))["rows"]
    assert {(row["model"], row["form"]) for row in rows} == {(m, form.title) for m in MODELS for form in forms((8.0, 11.0))}
    for row in rows:
        assert row["held_out"] < row["best_alone"], row  # perplexity: lower is better
        assert (row["spent"] is not None) == (row["profile"] == "iftm")


def test_parties_are_the_subjects() -> None:
    labels = np.array(
        ["comp.graphics", "rec.autos", "sci.med", "talk.politics.guns", "alt.atheism", "misc.forsale", "comp.sys"]
    )
    raw = Corpus.from_strings([f"word number {n}" for n in range(7)], labels=labels, name="some")
    assert {name: len(part) for name, part in by_subject(raw).items()} == {
        "comp": 2, "rec": 1, "sci": 1, "talk": 1, "other": 2,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(newsgroups_file() is None, reason="20 Newsgroups does not lie beside this checkout")
def test_it_can_be_reproduced_in_small() -> None:
    rows = reproduce(epsilons=(11.0,), models=("lda",), documents=2_000)["rows"]
    assert [row["form"] for row in rows] == ["aligned", "matched", "matched, epsilon 11 per word"]
    assert all(row["held_out"] < row["best_alone"] for row in rows)
