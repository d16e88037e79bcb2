"""The bench of CombinedTM runs whole on a few documents, and says that its peer is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lab
from lab import research_corpora as newsgroups
from lab.bench import neural as bench_neural
from lab.peers import other_packages as lda_peers


@pytest.fixture(autouse=True)
def _synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (newsgroups, bench_neural):
        monkeypatch.setattr(module, "newsgroups_file", lambda: None)


def test_a_peer_that_is_not_installed_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lda_peers, "interpreter", lambda: None)
    result = bench_neural.bench(documents=70, epochs=1, vocabularies=(60,))
    assert result["rows"] == []
    assert result["missing"][0].startswith(bench_neural.PEER)


@pytest.mark.slow
def test_both_train_by_turns_and_are_judged_alike() -> None:
    if lda_peers.interpreter() is None:
        pytest.skip("the peers' environment is not here")
    told: list[tuple[int, int]] = []
    result = bench_neural.bench(lambda *now: told.append(now), documents=1_500, epochs=2, vocabularies=(60,))
    if result["missing"]:
        pytest.skip("the peer is not installed in the peers' environment")
    assert told[-1][0] == told[-1][1]
    assert len(result["rows"]) == 1 + 2 * (len(bench_neural.SEEDS) + 1)
    assert {row["peer"].split()[0] for row in result["rows"]} == {bench_neural.PEER}


def test_the_committed_result_is_four_times_faster_and_no_less_coherent() -> None:
    rows = json.loads((Path(lab.__file__).parent / "results" / "bench-neural.json").read_text("utf-8"))["rows"]
    speed = [row for row in rows if row["unit"] == "s per epoch"]
    assert len(speed) == len(bench_neural.VOCABULARIES)
    assert all(row["ratio"] >= 4 for row in speed)
    means = [row for row in rows if "mean of 3 seeds" in row["case"]]
    assert len(means) == 2
    assert all(row["difference"] >= 0 for row in means)
