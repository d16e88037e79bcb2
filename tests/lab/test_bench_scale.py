"""The bench of large corpora: what it measures is the same on disk and in memory, and what does not finish is named."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import lab
from lab.bench.scale import PEERS, SIZES, ScaleRun, bench, result_of
from lab.bench.scale_cases import (
    BUILD,
    DISK,
    ENGINES_OF,
    MEMORY,
    MODELS,
    PARTS,
    ROUND,
    TEXT,
    ScaleCase,
    measured,
)
from lab.keeping import KeptRows
from lab.measuring import Row
from lab.processes import NotMeasured, NotNow, finished

RESULTS = Path(lab.__file__).parent / "results"


def test_answers_on_disk_and_in_memory_have_the_same_bytes(tmp_path: Path) -> None:
    built = measured(ScaleCase(BUILD, 120), tmp_path)
    assert built["seconds"] > 0
    disk, memory = (measured(ScaleCase(ROUND, 120, "lda", place), tmp_path) for place in (DISK, MEMORY))
    assert disk["sha256"] == memory["sha256"]
    assert disk["tokens_per_second"] > 0


def test_texts_are_built_into_the_same_number_of_tokens(tmp_path: Path) -> None:
    built = measured(ScaleCase(TEXT, 90), tmp_path)
    assert built["source_bytes"] > 90 * 60 * 5
    assert not (tmp_path / "texts.jsonl").exists()


def test_the_parts_of_a_round_are_weighed(tmp_path: Path) -> None:
    case = ScaleCase(PARTS, 120, "lda")
    found = measured(case, tmp_path)
    assert found["values"] == case.topics * case.words
    assert min(found["question_bytes"], found["sum_bytes"]) > found["values"] * 4
    assert found["kept_bytes"] >= 120 * 60  # a topic for each word
    assert found["stored_bytes"] >= 120 * 60 * 4  # a number for each word, at least


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


def test_what_is_missing_only_now_is_measured_by_the_next_start(tmp_path: Path) -> None:
    keep = tmp_path / "rows.jsonl"
    run = ScaleRun(tmp_path, [100], KeptRows(keep), None)
    case = ScaleCase(BUILD, 100)
    reasons = iter([NotNow("is not installed"), NotMeasured("did not finish in 1 s")])

    def refused() -> Row:
        raise next(reasons)

    run._row(asdict(case), str(case), refused, 1)
    assert run.absent == {"build, 100 documents": "is not installed"}
    assert not run.rows()
    run._row(asdict(case), str(case), refused, 1)
    run._row(asdict(case), str(case), refused, 1)  # is kept: it is not called
    assert [row["missing"] for row in KeptRows(keep).rows.values()] == ["did not finish in 1 s"]
    assert "build, 100 documents: did not finish in 1 s" in result_of(run)["missing"]


def test_the_committed_result_has_all_sizes_and_reaches_its_goals() -> None:
    result = json.loads((RESULTS / "bench-scale.json").read_text("utf-8"))
    rows = [row for row in result["measured"] if row.get("what") == ROUND]
    assert {(row["documents"], row["model"]) for row in rows} == {(size, model) for size in SIZES for model in MODELS}
    assert all(goal["held"] for goal in result["tables"]["Goals"])
    for size in SIZES:
        assert len({row["sha256"] for row in rows if row["model"] == "lda" and row["documents"] == size}) == 1
    named = json.dumps([*result["missing"], *result["measured"]])
    assert all(name in named for name in (*PEERS, *ENGINES_OF))
