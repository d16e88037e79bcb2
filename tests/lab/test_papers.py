"""Experiments of papers: what is killed goes on, what is claimed follows from rows, and files hold what was made."""

from __future__ import annotations

import csv
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import lab.measuring
from docs.generate import paper_pages
from lab.keeping import Key
from lab.measuring import Row
from lab.papers.experiment import (
    HOLDS,
    IN_PART,
    NOT_HERE,
    Claim,
    Experiment,
    Findings,
    Scale,
    curves,
    means,
    reproduced,
    verdict,
)
from lab.papers.fednmf import FEDNMF
from lab.papers.gfedntm import GFEDNTM
from lab.papers.iftm import IFTM
from lab.papers.protected import Measure, claims, plots, tables, under_profiles
from lab.papers.written import write_files
from securetm.errors import BadSetting, NotFound

from . import squares
from .test_commands import refused

MADE: list[Key] = []


def squared(key: Key) -> Row:
    """A row for a case; the fourth one ever is cut off."""
    MADE.append(key)
    if len(MADE) == 4:
        raise KeyboardInterrupt
    return {"square": key["n"] ** 2 + key["seed"]}


def found(scale: Scale, rows: Sequence[Row]) -> Findings:
    of = means(rows, ("who", "n"), ("square",))
    plot = {"figure": "Figure 1", "title": "squares", "x": "n", "y": "square", **curves(of, "who", "n", "square")}
    claim = Claim("squares grow", "they do", f"{of[-1]['square']:g}", verdict([of[-1]["square"] > of[0]["square"]]), "because")
    return Findings(
        (claim,), {"Squares": of}, (plot, {**plot, "title": "as bars", "bars": True, "marks": ["one", "two", "three"]})
    )


def cases(scale: Scale) -> list[Key]:
    return [{"who": "we", "n": n, "seed": seed} for n in scale.sizes["numbers"] for seed in scale.seeds]


SCALES = {name: Scale(name, (0, 1), {"numbers": (1, 2, 3)}, ("three numbers",)) for name in ("small", "medium")}
SQUARES = Experiment(
    "squares",
    "On squares",
    "Squares numbers.",
    SCALES,
    cases,
    squared,
    found,
    lambda _: [{"corpus": "none", "documents": 0}],
    ("n=2",),
)


@pytest.fixture
def nothing_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    MADE.clear()
    yield
    MADE.clear()


@pytest.mark.usefixtures("nothing_made")
def test_a_killed_run_goes_on_where_it_was_and_says_what_it_is() -> None:
    with pytest.raises(KeyboardInterrupt):
        reproduced(SQUARES, "small")
    told: list[tuple[int, int]] = []
    result = reproduced(SQUARES, "small", on_progress=lambda *so_far: told.append(so_far))
    assert len(MADE) == 4 + 3  # three were kept, one was cut off
    assert told[-1] == (6, 6)
    assert [(row["n"], row["seed"], row["square"]) for row in result["rows"]] == [
        (n, seed, n * n + seed) for n in (1, 2, 3) for seed in (0, 1)
    ]
    assert result["command"] == "python -m lab reproduce squares --scale small"
    assert result["reductions"] == ["three numbers"]
    assert result["claims"][0]["verdict"] == HOLDS
    (line,) = (line for line in result["tables"]["Squares"] if line["n"] == 3)
    assert (line["repetitions"], line["square"]) == (2, 9.5)
    assert line["square_away"] == pytest.approx(12.706 * 0.5, rel=1e-4)
    with pytest.raises(NotFound):
        reproduced(SQUARES, "huge")


@pytest.mark.usefixtures("nothing_made")
def test_some_rows_are_made_alone_and_serve_the_whole() -> None:
    some = reproduced(SQUARES, "small", only=("n=2", "seed=0", "seed=1"))
    assert [row["square"] for row in some["rows"]] == [4, 5]
    assert "claims" not in some
    MADE.extend([{}] * 4)  # beyond the one that is cut off
    reproduced(SQUARES, "small")
    assert len(MADE) == 2 + 4 + 4  # those of n = 1 and 3
    for wrong in ("n=4", "colour=red"):
        with pytest.raises(BadSetting):
            reproduced(SQUARES, "small", only=(wrong,))


@pytest.mark.parametrize("experiment", [FEDNMF, GFEDNTM, IFTM], ids=lambda one: one.name)
def test_the_rows_that_a_page_names_are_there(experiment: Experiment) -> None:
    wanted = dict(one.split("=") for one in experiment.some)
    rows = lab.measuring.committed(f"papers-{experiment.name}-medium")["rows"]
    assert [row for row in rows if all(str(row.get(field)) == value for field, value in wanted.items())]


def test_workers_end_with_the_run_that_is_killed(tmp_path: Path) -> None:
    pipes = [tmp_path / f"worker {n}" for n in range(2)]
    for pipe in pipes:
        os.mkfifo(pipe)
    keys = [{"tells": str(pipe)} for pipe in pipes]
    program = (
        f"from lab.keeping import KeptRows, made; from {squares.__name__} import endless; made({keys}, endless, KeptRows(), 2)"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as run:
        workers = [os.pidfd_open(int(pipe.read_text("utf-8"))) for pipe in pipes]
        run.kill()
    for worker in workers:
        assert select.select([worker], [], [], 60)[0], "a worker goes on"
        os.close(worker)


@pytest.mark.usefixtures("nothing_made")
def test_files_and_the_page_hold_what_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MADE.extend([{}] * 4)
    result = reproduced(SQUARES, "medium", tmp_path / "kept.jsonl")
    written = write_files(result, tmp_path / "papers")
    assert [path.name for path in written] == [
        f"squares-medium{end}" for end in (".json", ".csv", "-figure-1.svg", "-figure-1.png")
    ]
    assert json.loads(written[0].read_text("utf-8")) == json.loads(json.dumps(result))
    rows = list(csv.DictReader(written[1].read_text("utf-8").splitlines()))
    assert [float(row["square"]) for row in rows] == [row["square"] for row in result["rows"]]
    monkeypatch.setattr(lab.measuring, "RESULTS", tmp_path)
    monkeypatch.setattr(paper_pages, "RESULTS", tmp_path)
    pages = {path.relative_to(paper_pages.ROOT).as_posix(): text for path, text in paper_pages.paper_pages().items()}
    drawn = "paper-squares-figure-1.svg"
    assert pages.keys() == {"docs/research/paper-squares.md", f"docs/assets/{drawn}", f"docs/assets/narrow/{drawn}"}
    text = pages["docs/research/paper-squares.md"]
    assert f"| squares grow | they do | 9.5 | **{HOLDS}** | because |" in text
    for part in (
        "python -m lab reproduce squares --scale medium",
        "- three numbers",
        "<!-- picture: paper-squares-figure-1.svg -->",
        "lab/results/papers/squares-medium.csv",
    ):
        assert part in text


def test_a_verdict_is_of_all_comparisons() -> None:
    assert [verdict(held) for held in ([True], [True, False], [False])] == [HOLDS, IN_PART, NOT_HERE]


def test_what_protection_costs_is_told_by_each_measure() -> None:
    kept = {"masked": 1.0, "bfv": 1.0, "epsilon 8": 0.95, "epsilon 3": 0.92, "epsilon 1": 0.5}
    rows = [
        {**one, "f1": 0.8 * kept[at], "perplexity": 100 / kept[at], "asked": 3, "megabytes": 1.0}
        for one in under_profiles(("nmf",), (0, 1))
        if (at := one["profile"] if one["epsilon"] is None else f"epsilon {one['epsilon']:g}")
    ]
    assert sum(row["profile"] == "bfv" for row in rows) == 1  # is tried once
    measures = (Measure("f1", "macro F1"), Measure("perplexity", "perplexity", less=True, digits=0))
    hidden, budget, _, surprise = claims(rows, measures)
    assert (hidden.verdict, budget.verdict, surprise.verdict) == (HOLDS, IN_PART, IN_PART)
    assert "95 %, 92 %, 50 %" in budget.why
    assert "95 %, 92 %, 50 %" in surprise.why
    (table,) = tables(rows, ("f1", "perplexity", "coherence"), "made up").values()
    assert [row["f1"] for row in table] == pytest.approx([0.8 * share for share in kept.values()])
    assert [plot["marks"] for plot in plots(rows, measures, "made up")] == [list(kept)] * 2


def test_only_papers_have_scales_and_files(tmp_path: Path) -> None:
    assert "--scale" in refused("reproduce", "matched-topics", "--scale", "small")
    assert "--write" in refused("reproduce", "default-model", "--write", str(tmp_path))
