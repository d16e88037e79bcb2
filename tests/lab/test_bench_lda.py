"""The bench of LDA runs whole on a few documents, says which peers are missing, and what was committed keeps its bars."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lab
from lab import research_corpora as newsgroups
from lab.bench import lda as bench_lda
from lab.peers import other_packages as lda_peers
from lab.peers.other_packages import SCIKIT, TOMOTOPY

COMMITTED = Path(lab.__file__).parent / "results" / "bench-lda.json"


@pytest.fixture
def _synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newsgroups, "newsgroups_file", lambda: None)
    monkeypatch.setattr(bench_lda, "WORDS", 100)


@pytest.mark.usefixtures("_synthetic")
def test_peers_that_are_not_installed_are_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lda_peers, "interpreter", lambda: None)
    told: list[tuple[int, int]] = []
    result = bench_lda.bench(lambda done, total: told.append((done, total)), documents=40, topics=3, seconds=1)
    assert told[-1] == (5, 5)
    assert result["rows"] == []
    assert [line.split()[0] for line in result["missing"]] == [SCIKIT, TOMOTOPY]
    assert "synthetic" in result["corpus"]


@pytest.mark.slow
@pytest.mark.usefixtures("_synthetic")
def test_both_train_by_turns_and_are_judged_alike() -> None:
    if lda_peers.interpreter() is None:
        pytest.skip("the peers' environment is not here")
    result = bench_lda.bench(documents=60, topics=3, seconds=1)
    if result["missing"]:
        pytest.skip("a peer is not installed in the peers' environment")
    assert len(result["rows"]) == 10
    for row in result["rows"]:
        assert np.isfinite(row["ratio"])
        assert row["peer"].split()[0] in (TOMOTOPY, SCIKIT)


@pytest.mark.usefixtures("_synthetic")
def test_ours_never_gets_more_time_than_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of the test's own, on which each round takes a hundredth of a second."""
    ticks = itertools.count()
    monkeypatch.setattr(bench_lda, "time", SimpleNamespace(perf_counter=lambda: next(ticks) / 100))
    _, train, judge = bench_lda._corpus(200)
    ours = bench_lda.OurTraining(train, bench_lda.Race(TOMOTOPY, 3, 1, (1,)))
    ours.advance(0.2)
    first = ours.sweeps
    assert first >= 2
    ours.advance(ours.seconds)
    assert ours.sweeps == first
    ours.advance(0.5)
    assert ours.sweeps > first
    assert judge.per_word(*ours.topics()) < 0


@pytest.mark.usefixtures("_synthetic")
def test_the_judge_prefers_the_topics_that_made_the_documents() -> None:
    _, train, judge = bench_lda._corpus(300)
    learned = bench_lda.OurTraining(train, bench_lda.Race(TOMOTOPY, 20, 1, (1,)))
    learned.advance(0.5)
    flat = np.full((20, train.counts.shape[1]), 1.0 / train.counts.shape[1])
    assert judge.per_word(*learned.topics()) > judge.per_word(flat, np.full(20, 0.1)) + 0.1


def test_the_committed_race_keeps_its_bars() -> None:
    result = json.loads(COMMITTED.read_text("utf-8"))
    assert result["missing"] == []
    against = [row for row in result["rows"] if row["peer"].startswith(TOMOTOPY)]
    likelihoods = [row for row in against if row["case"].startswith("held-out")]
    speeds = [row for row in against if row["case"].startswith("tokens")]
    assert {row["case"].split(": ")[1].split(",")[0] for row in against} == {"K = 50", "K = 200"}
    assert len(likelihoods) == 12
    assert len(speeds) == 6
    assert all(row["ratio"] >= 1 for row in speeds)
    assert all(row["ratio"] >= 1 for row in likelihoods)
