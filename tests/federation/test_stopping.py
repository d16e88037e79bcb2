"""When training ends: after so many rounds, or when what is measured has settled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.coordinator.training import settled
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import execute
from securetm.plans.schema import TrainingChoice
from securetm.stages import Unwatched

from .conftest import small_plan

HELD_OUT = TrainingChoice(stop="held_out", patience=2, tolerance=0.1)


@pytest.mark.parametrize(
    ("history", "ended"),
    [
        ([], False),
        ([100.0], False),
        ([100.0, 100.0], False),  # too short to judge
        ([100.0, 100.0, 100.0], True),
        ([100.0, 99.0, 95.0], True),  # less than a tenth better
        ([100.0, 99.0, 89.0], False),
        ([100.0, 89.0, 99.0], False),  # one of the last two was better
        ([50.0, 60.0, 70.0], True),
        ([70.0, 60.0, 50.0, 49.0, 48.0], True),
        ([0.0, 0.0, 0.0], True),  # nothing moves any more
    ],
)
def test_settled(history: list[float], ended: bool) -> None:
    assert settled(HELD_OUT, history) is ended


@pytest.mark.parametrize("stop", ["weights", "held_out"])
def test_a_run_ends_when_its_measure_has_settled(stop: str, corpora: Mapping[str, Corpus], tmp_path: Path) -> None:
    plan = small_plan(
        training__stop=stop, training__rounds=200, training__every=2, training__patience=1, training__tolerance=0.99
    )
    result = execute(begin(tmp_path / "run", plan, corpora), Unwatched(), comparison=False)
    assert result["rounds"] == 4  # the first two measures differ by less than 99 per cent
