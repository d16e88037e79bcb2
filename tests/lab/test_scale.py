"""Large corpora: the same on disk and in memory, what does not finish is named, and clusters are simulated."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from docs.generate.cluster_rounds import Cluster, Rates, median, most_waiting, rounds
from lab.bench.scale import PEERS, bench
from lab.bench.scale_cases import (
    BUILD,
    DISK,
    ENGINES_OF,
    MEMORY,
    MODELS,
    ROUND,
    TEXT,
    ScaleCase,
    measured,
)
from lab.keeping import KeptRows
from lab.processes import NotMeasured, NotNow, finished
from securetm.contracts import BLOCK_DOCUMENTS


def test_answers_on_disk_and_in_memory_have_the_same_bytes(tmp_path: Path) -> None:
    built = measured(ScaleCase(BUILD, 120), tmp_path)
    assert built["seconds"] > 0
    disk, memory = (measured(ScaleCase(ROUND, 120, "lda", place), tmp_path) for place in (DISK, MEMORY))
    assert disk["sha256"] == memory["sha256"]
    assert disk["tokens_per_second"] > 0


def test_a_measurement_says_what_it_took_and_why_it_did_not_end() -> None:
    found = finished([sys.executable, "-c", "print('[]'); print('{\"seconds\": 1}')"], 60)
    assert found["seconds"] == 1
    assert found["peak_mib"] >= 0
    with pytest.raises(NotNow, match="ZeroDivisionError"):
        finished([sys.executable, "-c", "1 / 0"], 60)
    with pytest.raises(NotMeasured, match="did not finish in 0"):
        finished([sys.executable, "-c", "import time; time.sleep(600)"], 0.2)
    with pytest.raises(NotMeasured, match="needs more than 300 MiB"):
        finished([sys.executable, "-c", "x = bytes(1 << 30)"], 60, 300)


@pytest.mark.slow
def test_a_short_form_measures_every_case_once(tmp_path: Path) -> None:
    keep = tmp_path / "rows.jsonl"
    result = bench(documents=400, keep=keep)
    assert {row["case"].split(",")[0] for row in result["rows"]} >= {*MODELS, BUILD, TEXT}
    same = [goal for goal in result["tables"]["Goals"] if "same SHA-256" in goal["goal"]]
    assert same
    assert all(goal["held"] for goal in same)
    named = json.dumps([*result["missing"], *result["measured"]])
    assert all(name in named for name in (*PEERS, *ENGINES_OF))
    rows = len(KeptRows(keep).rows)
    assert bench(documents=400, keep=keep)["measured"] == result["measured"]
    assert len(KeptRows(keep).rows) == rows


DOCUMENTS = 200 * BLOCK_DOCUMENTS


CALM = Cluster(4, slow=0.0, lost_an_hour=0.0)


ONLY_WORK = Rates(1e-5, 0, 0, 0, 0.0, 0.0, 1e9, 1e9)


def test_slow_and_lost_workers_cost_time_and_no_document() -> None:
    calm = rounds(DOCUMENTS, CALM, ONLY_WORK, 1)
    slow = rounds(DOCUMENTS, replace(CALM, slow=0.5, slowness=5.0), ONLY_WORK, 20)
    assert median(tuple(slow), "seconds") > median(tuple(calm), "seconds")
    often = replace(CALM, lost_an_hour=60.0, restart=30.0)  # each of them once a minute
    lost = rounds(DOCUMENTS, often, ONLY_WORK, 20)
    assert sum(one.lost for one in lost) > 5
    assert median(tuple(lost), "seconds") > median(tuple(calm), "seconds")
    assert all(1 <= most_waiting(DOCUMENTS, one) <= 16 for one in lost)  # which adds up all blocks
    assert rounds(DOCUMENTS, often, ONLY_WORK, 20) == lost  # the same draws
