"""Frontiers, costs and scale: a row is a federation with a ledger, points only where an attack was made, clusters simulated."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docs.generate.cluster_rounds import Cluster, Rates, median, most_waiting, rounds
from lab.bench.scale import PEERS, bench
from lab.bench.scale_cases import BUILD, DISK, ENGINES_OF, MEMORY, MODELS, ROUND, TEXT, ScaleCase, measured
from lab.keeping import KeptRows, Key, made
from lab.measuring import Row, committed
from lab.processes import NotMeasured, NotNow, finished
from lab.reproduce.contenders import FREQUENCIES, MOMENTS, PLAIN, PUBLIC
from lab.reproduce.frontier_cases import (
    CENTRAL,
    DISTRIBUTED,
    EPSILONS,
    NEWS,
    NO_NOISE,
    TITLES,
    FrontierBlock,
    FrontierCase,
    chosen,
)
from lab.reproduce.frontier_findings import goals_of, means
from lab.reproduce.use_and_leakage import MEMBERS, OPEN, TEXTS, with_ratio
from lab.research_corpora import looking_in
from securetm.contracts import BLOCK_DOCUMENTS
from securetm.errors import BadSetting

from .squares import looked_in, squared


def test_cases_are_chosen_by_their_fields() -> None:
    cases = list(FrontierBlock(NEWS, 20, (PLAIN, MOMENTS), (NO_NOISE, CENTRAL), (0, 1)).cases())
    assert len(cases) == 2 * 2 * (1 + len(EPSILONS))
    assert {case.epsilon for case in chosen(cases, ["epsilon=1", "epsilon=none", "seed=0"])} == {1.0, None}
    with pytest.raises(BadSetting, match="fits no case"):
        chosen(cases, ["epsilon=2"])
    with pytest.raises(BadSetting, match="must be FIELD=VALUE"):
        chosen(cases, ["colour=red"])


def _never(key: Key) -> Row:
    raise AssertionError(key)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_kept_rows_are_not_made_again(workers: int, tmp_path: Path) -> None:
    keys: list[dict[str, Any]] = [{"n": n} for n in range(4)]
    file, told = tmp_path / "rows.jsonl", list[tuple[int, int]]()
    made(keys[:2], squared, KeptRows(file))
    with file.open("a", encoding="utf-8") as torn:
        torn.write('{"key": {"n": 2}, "row": {"squ')  # where it was killed
    rows = made(keys, squared, KeptRows(file), workers, lambda done, total: told.append((done, total)))
    assert [row["square"] for row in rows] == [0, 1, 4, 9]
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert made(keys, _never, KeptRows(file)) == rows


@pytest.mark.slow
def test_workers_look_for_corpora_where_the_user_said(tmp_path: Path) -> None:
    with looking_in(tmp_path):
        rows = made([{"n": n} for n in range(3)], looked_in, KeptRows(), 2)
    assert rows == 3 * [{"folder": str(tmp_path)}]


def _run(model: str, profile: str, epsilon: float | None, held_out: float, corpus: str = NEWS, seed: int = 0) -> Row:
    case = FrontierCase(corpus, 20, model, profile, epsilon, seed)
    figures = {"f1": 0.32, "held_out": held_out, "npmi": 0.2, "npmi_held_out": 0.1, "diversity": 0.5}
    return {**case.key(), **figures, "rounds": 3, "seconds": 1.0, "megabytes": 1.0, "noise": 1.0}


def test_goals_say_what_was_reached() -> None:
    central = {0.5: -6.2, 1.0: -6.1, 3.0: -6.0, 8.0: -5.97}
    runs = [_run(PUBLIC, CENTRAL, epsilon, value) for epsilon, value in central.items()]
    runs += [_run(PUBLIC, DISTRIBUTED, 3.0, -6.1), _run(PUBLIC, NO_NOISE, None, -5.9)]
    runs += [_run(FREQUENCIES, NO_NOISE, None, -4.9, TITLES), _run(PUBLIC, CENTRAL, 1.0, -5.0, TITLES)]
    goals = {goal["goal"]: goal for goal in goals_of(means(runs))}
    at_least = f"{NEWS}, 20 topics, central, epsilon %s, {PUBLIC}: log-likelihood per held-out word at least"
    assert not goals[at_least % 1]["held"]
    assert goals[at_least % 3]["held"]
    dearer = next(
        goal for name, goal in goals.items() if name.startswith(f"{NEWS}, distributed at epsilon 3") and "held_out" in name
    )
    assert dearer["reached"] == pytest.approx(3.0, abs=0.01)
    assert not dearer["held"]
    assert any(name.startswith(TITLES) and not goal["held"] for name, goal in goals.items())
    assert not any("2,000 of" in name for name in goals)  # no such row was made


# ---- use and leakage -------------------------------------------------------------------------------------------------------


RUN = {"corpus": "titles", "model": "lda", "right": 50, "judged": 100, "megabytes": 0.5}


def rows() -> list[dict[str, Any]]:
    """A run without protection, one that keeps four fifths of its use, and one of a model that has no other run."""
    gained = {f"{TEXTS}_gained{end}": value for end, value in (("", 0.5), ("_low", 0.4), ("_high", 0.6))}
    return [
        {**RUN, "protection": OPEN, **gained},
        {**RUN, "protection": "masked", "right": 40},
        {**RUN, "model": "moments"} | gained,
    ]


def test_use_is_told_over_the_run_without_protection() -> None:
    given = [{"protection": "masked", **row} for row in rows()]
    plain, masked, better = (with_ratio(row, given) for row in given)
    assert plain["use"] == 1
    assert masked["use"] == 0.8
    assert masked["use_low"] < 0.8 < masked["use_high"]
    assert masked["use_high"] > 1  # of so few documents
    assert better["use"] == 1
    assert (
        with_ratio({**better, "right": 60, "protection": OPEN}, [*given, {**better, "right": 60, "protection": OPEN}])["use"]
        == 1
    )
    assert "use" not in with_ratio({**RUN, "corpus": "posts", "protection": "masked"}, given)


def test_committed_runs_show_what_is_said_of_them() -> None:
    """Masks hide each party and not the sum; noise of the parties hides texts from the coordinator, and costs use."""
    found = committed("reproduce-use-and-leakage")["rows"]
    by = {(row["corpus"], row["model"], row["protection"]): row for row in found}
    for corpus in dict.fromkeys(row["corpus"] for row in found):
        for model in ("semantic", "moments", "lda"):
            assert by[corpus, model, "masked"]["use"] == pytest.approx(by[corpus, model, OPEN]["use"], abs=0.05)
        shown = {
            one: by[corpus, "semantic", one][f"{TEXTS}_gained_low"] for one in (OPEN, "masked", "dp-distributed, epsilon 3")
        }
        assert shown["dp-distributed, epsilon 3"] < 0.3 < min(shown[OPEN], shown["masked"])
    gained = [(row, f"{kind}_gained") for row in found for kind in (TEXTS, MEMBERS) if f"{kind}_gained" in row]
    assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for row, name in gained)
    assert all(row[f"{name}_low"] <= row[f"{name}_ceiling"] for row, name in gained)


# ---- scale -----------------------------------------------------------------------------------------------------------------


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
