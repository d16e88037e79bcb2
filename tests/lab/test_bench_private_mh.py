"""The measurement of topics behind noise runs whole on little text, and what was committed keeps its ratios."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lab
from lab import research_corpora as newsgroups
from lab.bench import private_mh as bench_private_mh
from lab.bench.private_mh import PEER
from securetm.mechanisms.laplace_counts import LaplaceCounts
from securetm.models.lda.slots import less_noise

COMMITTED = Path(lab.__file__).parent / "results" / "bench-private-mh.json"


@pytest.mark.slow
def test_it_measures_speed_and_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_private_mh, "TURNS", 2)
    monkeypatch.setattr(bench_private_mh, "HELD_OUT", 20)
    monkeypatch.setattr(bench_private_mh, "EPSILONS", (8.0, 11.0))
    monkeypatch.setattr(newsgroups, "newsgroups_file", lambda: None)
    told: list[tuple[int, int]] = []
    sizes = {"tokens": 400, "words": 60, "topics": 4, "documents": 30, "learned_words": 50, "learned_topics": 3, "rounds": 3}
    result = bench_private_mh.bench(on_progress=lambda done, total: told.append((done, total)), **sizes)
    assert told[-1] == (14, 14)
    assert result["missing"] == []
    speeds = [row for row in result["rows"] if row["unit"].startswith("tokens")]
    assert [row["peer"] for row in speeds] == [PEER] * 4
    assert all(row["ours"] > 0 and row["theirs"] > 0 for row in speeds)
    worths = [row for row in result["rows"] if row["unit"] == "nats per word"]
    assert len(worths) == 10
    assert all(-20 < row["ours"] < 0 for row in worths)
    assert [row["peer"] for row in worths if "peer" in row] == ["no noise"] * 8


@pytest.mark.parametrize("whole", [False, True])
def test_the_naive_form_draws_from_the_same_target(whole: bool) -> None:
    """Its noise is next to none here, so that what a topic makes of the word alone decides."""
    phi = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    tokens, sums = np.zeros(40_000, dtype=np.int32), np.zeros((2, 3))
    here, noise = np.array([0.3, 0.6]), np.arange(40_000, dtype=np.uint64) * np.uint64(7919)
    topics = bench_private_mh.naive(tokens, np.log(phi), here, 400.0, 0.2, whole, noise, sums)
    # two proposals by the document, from topic 0 on: it is left with chance 2/3 x 1/7 and come back to with chance 1/3
    left, back = 2 / 3 / 7, 1 / 3
    assert abs(float(topics.mean()) - (left * (1 - back) + (1 - left) * left)) < 0.005
    assert np.allclose(sums.sum(axis=0), [40_000, 0, 0], rtol=0.01)


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_expected_noise_is_what_is_taken_off(kind: str) -> None:
    law = LaplaceCounts(3.0, 0.2, kind).law(40)
    _, words, weights = law.draw(b"s" * 32, np.zeros(20_000, dtype=np.int32), 0)
    counts = np.bincount(words, weights, minlength=40)[None]
    mean = bench_private_mh._mean(law)
    assert abs(counts[0, 1:].mean() / 20_000 / mean - 1) < 0.02
    assert abs(less_noise(counts, mean)[0, 0] / 20_000 - (1 - mean)) < 0.03
    assert less_noise(counts, mean)[0, 1:].mean() < counts[0, 1:].mean() / 4


def test_the_committed_measurement_keeps_its_ratios() -> None:
    result = json.loads(COMMITTED.read_text("utf-8"))
    rows = {row["case"]: row for row in result["rows"]}
    continuous = rows["continuous noise, epsilon 8, V = 5,000, K = 50, one sweep"]
    discrete = rows["discrete noise, epsilon 8, V = 5,000, K = 50, one sweep"]
    assert continuous["ours"] >= continuous["asked"] == 100_000  # tokens a second, of a core that nothing else runs on
    assert discrete["times_continuous"] >= discrete["asked_times"] == 10
    assert all(row["ratio"] > 1 for row in (continuous, discrete))
    worths = [row for row in result["rows"] if row["unit"] == "nats per word"]
    assert {row["threshold"] for row in worths if "peer" in row} == {0.2}
    assert len(worths) == 2 * (1 + 2 * 4)
