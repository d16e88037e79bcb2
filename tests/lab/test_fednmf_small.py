"""FedNMF on short texts: every method learns on a little corpus, rounds are a federation's, and what was committed is whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lab
from lab.reproduce import fednmf_small
from lab.reproduce.fednmf_small import INFORMED, THEIRS, TITLES, ShortTexts, cohorts, in_equal_seconds, judge, methods
from securetm.corpus.corpus import Corpus
from securetm.models.gradients import SERVER_STEPS

COMMITTED = Path(lab.__file__).parent / "results" / "reproduce-fednmf-small.json"
SUBJECTS = ("river water lake boat fish", "court judge trial law jury", "tensor matrix vector gradient loss")


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> ShortTexts:
    """Three subjects in place of a corpus of short texts."""
    monkeypatch.setattr(fednmf_small, "TOPICS", 4)
    monkeypatch.setattr(fednmf_small, "ROUNDS", 10)
    monkeypatch.setattr(fednmf_small, "WORDS", 15)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(SUBJECTS[n % 3].split(), 6)) for n in range(300)]
    corpus = Corpus.from_strings(texts, labels=[str(n % 3) for n in range(300)], name="little")
    return ShortTexts("SMS Spam", corpus, 2)


@pytest.mark.slow
def test_every_method_learns_and_is_judged(little: ShortTexts) -> None:
    found = {name: little.row(name) for name in methods(1)}
    assert set(THEIRS) <= set(found)
    for name, (row, labels) in found.items():
        assert row["f1"] > 0.6, name  # chance is a third
        assert len(labels.said) == len(little.dealt)
        assert (row["f1_of_kept_weights"] is not None) == ("SGD" in name or "FedNMF" in name)
    said = {("SMS Spam", name): labels for name, (_, labels) in found.items()}
    result = judge([row for row, _ in found.values()], said)
    assert [pair["server"] for pair in result["pairs"]] == list(SERVER_STEPS)
    assert result["verdict"] in ("holds", "does not hold")


def test_nmf_is_as_near_as_scikit_learns(little: ShortTexts) -> None:
    row = in_equal_seconds(little)
    assert row["rounds"] >= 1
    assert row["ours"] < 1.2 * row["theirs"] + 0.1


def test_cohorts_are_the_same_for_every_method() -> None:
    names = [f"party {n}" for n in range(10)]
    assert list(cohorts(names, 0.2, 3)) == list(cohorts(names, 0.2, 3))
    assert {len(some) for some in cohorts(names, 0.2, 3)} == {2}


def test_the_committed_table_has_every_method_on_every_corpus() -> None:
    result = json.loads(COMMITTED.read_text("utf-8"))
    assert {(row["of"], row["method"]) for row in result["rows"]} == {(title, name) for title in TITLES for name in methods(1)}
    assert len(result["pairs"]) == len(TITLES) * len(SERVER_STEPS)
    best = {row["of"]: row["f1"] for row in sorted(result["rows"], key=lambda row: row["f1"]) if INFORMED[:9] in row["method"]}
    assert set(best) == set(TITLES)
    for row in result["in_equal_seconds"]:
        assert row["ours"] < 1.01 * row["theirs"]
