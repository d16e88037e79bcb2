"""Parties whose documents are in several blocks: a killed run goes on to the same end, and remembers each block by itself."""

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
from securetm.federation.folder import begin, reopen
from securetm.federation.simulation.simulation import execute
from securetm.federation.store import read_arrays
from securetm.stages import Unwatched

from .conftest import FIVE, small_plan, texts
from .killed_run import ended

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
    expected = execute(unbroken, Unwatched())
    for name, corpus in in_blocks.items():
        corpus.save(tmp_path / "corpora" / f"{name}.npz")
    settings = json.dumps({name: value for name, value in PLAN.tables().items() if name != "tokeniser"})
    folder = tmp_path / "run"
    assert ended(folder, "begin", moment, moments, str(tmp_path / "corpora"), settings) == -signal.SIGKILL
    resumed = execute(reopen(folder), Unwatched())
    assert (resumed["topics"], resumed["quality"]) == (expected["topics"], expected["quality"])
    for name in in_blocks:
        kept = max((reopen(folder).party(name)).glob("memory-*.safetensors"))
        assert {names.split("/")[0] for names in read_arrays(kept)[0]} >= {"block 0", "block 1", "block 2"}
