"""What a run says it took is what all of its parts took together, however it ended in between."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm.corpus.corpus import Corpus
from securetm.errors import Failed
from securetm.federation.folder import begin, reopen
from securetm.federation.simulation.simulation import execute
from securetm.federation.transcript import Transcript
from securetm.stages import Unwatched

from .conftest import StopsAfter, small_plan

LDA = {"name": "lda", "n_topics": 3, "sweeps": 1}


def kept(folder: Path) -> tuple[tuple[int, int], float]:
    """Bytes from and to the parties, and seconds, that are on disk."""
    transcript = Transcript(folder / "transcript")
    found = transcript.traffic(), transcript.seconds()
    transcript.close()
    return found


@pytest.mark.slow
def test_of_a_run_in_two_parts_bytes_and_seconds_are_those_of_both(corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(model=LDA)
    unbroken = execute(begin(tmp_path / "unbroken", plan, corpora), Unwatched(), comparison=False)
    folder = begin(tmp_path / "broken", plan, corpora)
    with pytest.raises(Failed, match=r"the run was interrupted after round .*nothing is lost") as stop:
        execute(folder, StopsAfter(4), comparison=False)
    assert "securetm run --resume" in stop.value.advice()
    (up, _), seconds = kept(folder.path)
    assert up > 0
    assert seconds > 0
    result = execute(reopen(folder.path), Unwatched(), comparison=False)
    again = kept(folder.path)
    assert (result["bytes_up"], result["bytes_down"]) == again[0]
    assert seconds - 0.005 <= result["seconds"] <= again[1] + 0.005  # it is rounded
    # Only the first checkpoint was kept, so all four rounds were asked again, and what was sent for them counts twice.
    assert result["bytes_up"] > unbroken["bytes_up"] + 3 * up // 5
    assert result["bytes_down"] > unbroken["bytes_down"]
    assert result["rounds"] == unbroken["rounds"]
    assert result["topics"] == unbroken["topics"]


def test_dropping_what_is_asked_again_keeps_its_bytes(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for serial, size in ((1, 10), (2, 20), (3, 40)):
        transcript.record(serial, "request", "coordinator", "north", bytes(size))
        transcript.record(serial, "clear", "north", "coordinator", bytes(2 * size))
    for _ in range(2):  # what was dropped once is not dropped again
        transcript.forget_after(1)
        assert transcript.traffic() == (140, 70)
    assert transcript.rows("SELECT SUM(bytes) FROM messages") == [(30,)]
    transcript.close()
    assert os.listdir(tmp_path) == ["messages.sqlite"]
