"""A run killed at any moment goes on to the same end as one that was never interrupted."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from securetm.corpus.corpus import Corpus
from securetm.corpus.corpus_build import CorpusBuild
from securetm.corpus.records import Columns
from securetm.errors import Mistake
from securetm.federation.folder import RESULT, NotARun, RunBusy, alone_in, begin, reopen, result_of
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.stages import Unwatched

from ..quick_part import quick
from .conftest import FIVE, small_plan, texts
from .killed_run import ended
from .private import private_plan

NEVER = 10**9


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    assert one["topics"] == other["topics"]
    assert one["rounds"] == other["rounds"]
    assert one["quality"] == pytest.approx(other["quality"], rel=1e-5)
    for what in ("alone", "shared_at_party", "prevalence"):  # float32: where an array lies in memory can move the last digit
        for party, figures in one[what].items():
            assert figures == pytest.approx(other[what][party], rel=1e-5), (what, party)


@pytest.fixture(scope="module")
def stored(five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    for name, corpus in five.items():
        corpus.save(folder / f"{name}.npz")
    return folder


@pytest.fixture(scope="module", params=quick(["open-held_out", "masked-rounds"], "masked-rounds"))
def unbroken(request: pytest.FixtureRequest, five: Mapping[str, Corpus], tmp_path_factory: pytest.TempPathFactory) -> Any:
    profile, stop = request.param.split("-")
    plan = small_plan(profile=profile, training__stop=stop, training__every=3, model__batch=25)
    folder = begin(tmp_path_factory.mktemp("run") / "unbroken", plan, dict(sorted(five.items())))
    return plan, execute(folder, Unwatched(), comparison=False)


MOMENTS = [
    ("fsync", 26),
    pytest.param("round", 1, marks=pytest.mark.slow),
    pytest.param("round", 7, marks=pytest.mark.slow),
    pytest.param("fsync", 3, marks=pytest.mark.slow),
    pytest.param("fsync", 61, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("moment", "moments"), MOMENTS)
def test_a_killed_run_ends_as_if_it_had_not_been(
    moment: str, moments: int, unbroken: Any, stored: Path, tmp_path: Path
) -> None:
    plan, expected = unbroken
    folder = tmp_path / "run"
    settings = json.dumps({name: value for name, value in plan.tables().items() if name != "tokeniser"})
    assert ended(folder, "begin", moment, moments, str(stored), settings) == -signal.SIGKILL
    same(execute(reopen(folder), Unwatched(), comparison=False), expected)


@pytest.mark.slow
def test_killed_again_and_again(unbroken: Any, stored: Path, tmp_path: Path) -> None:
    plan, expected = unbroken
    folder = tmp_path / "run"
    settings = json.dumps({name: value for name, value in plan.tables().items() if name != "tokeniser"})
    assert ended(folder, "begin", "round", 2, str(stored), settings) == -signal.SIGKILL
    assert ended(folder, "resume", "round", 3) == -signal.SIGKILL
    assert ended(folder, "resume", "fsync", 9) == -signal.SIGKILL
    assert ended(folder, "resume", "round", NEVER) == 0
    same(result_of(folder), expected)


@pytest.mark.slow
def test_a_run_killed_after_its_budget_ended_goes_on_to_its_end(five: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = private_plan(tmp_path, "dp-local", privacy__epsilon=3.0, privacy__noise=0.8, training__rounds=500)
    folder = begin(tmp_path / "run", plan, five)
    first = execute(folder, Unwatched(), comparison=False)
    (folder.path / RESULT).unlink()  # as if it had been killed while each party trained alone, for comparison
    again = execute(reopen(folder.path), Unwatched(), comparison=False)
    assert first["stopped"] == again["stopped"] == "budget"
    assert (again["rounds"], again["topics"]) == (first["rounds"], first["topics"])


def test_one_folder_holds_one_run(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    begin(tmp_path / "run", small_plan(), corpora)
    with pytest.raises(Mistake, match="already holds a run"):
        begin(tmp_path / "run", small_plan(), corpora)
    with pytest.raises(NotARun):
        reopen(tmp_path)
    with pytest.raises(NotARun, match="finished run"):
        result_of(tmp_path / "run")


def test_two_processes_do_not_share_a_run(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    folder = begin(tmp_path / "run", small_plan(), corpora)
    with alone_in(folder.path), pytest.raises(RunBusy):
        execute(folder, Unwatched(), comparison=False)


PLAN = small_plan(model={"name": "lda", "n_topics": 3}, training__rounds=8, training__every=3)


@pytest.fixture(params=["in memory", "on disk"])
def in_blocks(request: pytest.FixtureRequest, five: Mapping[str, Corpus], tmp_path: Path) -> dict[str, Any]:
    """Five parties whose documents are in blocks of 12. On disk, they are parties of one stored corpus."""
    if request.param == "in memory":
        return {name: corpus.replace(block_documents=12) for name, corpus in sorted(five.items())}
    spoken = {name: texts(FIVE[name], 40, seed) for seed, name in enumerate(sorted(FIVE))}
    rows = [json.dumps({"text": text, "party": name}) for name, said in spoken.items() for text in said]
    (tmp_path / "notes.jsonl").write_text("\n".join(rows))
    CorpusBuild(str(tmp_path / "notes.jsonl"), tmp_path / "stored", Columns(), block_documents=12).run()
    stored = Corpus.load(tmp_path / "stored")
    assert stored.folder is not None
    return {name: stored.of_party(np.flatnonzero(stored.parties == name), name) for name in spoken}


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "moments"), [("round", 4), ("fsync", 90)])
def test_a_killed_run_goes_on_in_its_blocks(moment: str, moments: int, in_blocks: dict[str, Any], tmp_path: Path) -> None:
    unbroken = begin(tmp_path / "unbroken", PLAN, in_blocks)
    expected = execute(unbroken, Unwatched(), comparison=False)
    for name, corpus in in_blocks.items():
        corpus.save(tmp_path / "corpora" / f"{name}.npz")
    settings = json.dumps({name: value for name, value in PLAN.tables().items() if name != "tokeniser"})
    folder = tmp_path / "run"
    assert ended(folder, "begin", moment, moments, str(tmp_path / "corpora"), settings) == -signal.SIGKILL
    resumed = execute(reopen(folder), Unwatched(), comparison=False)
    assert (resumed["topics"], resumed["quality"]) == (expected["topics"], expected["quality"])
    for name in in_blocks:
        kept = max((reopen(folder).party(name)).glob("memory-*.safetensors"))
        assert {names.split("/")[0] for names in read_arrays(kept)[0]} >= {"block 0", "block 1", "block 2"}
