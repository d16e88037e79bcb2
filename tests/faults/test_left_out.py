"""A run that goes on without parties: who was left out is taken in again, and who was in a sum is in it for ever."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation import training
from securetm.federation.attendance import Attendance
from securetm.federation.folder import begin
from securetm.federation.store import CoordinatorStore

from .conftest import plan_of
from .machine import Kind, Machine, Script


@pytest.fixture(autouse=True)
def _kept_after_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SECONDS_BETWEEN_KEEPS", 0.0)


def survivors(machine: Machine) -> list[set[str]]:
    """Of each training round, in their order, as the coordinator wrote them down."""
    store = CoordinatorStore(machine.folder.coordinator)
    rows = store.rows("SELECT survivors FROM rounds WHERE question = 'train' ORDER BY serial")
    store.close()
    return [set(names.split()) for (names,) in rows]


@pytest.mark.parametrize("stage", ["Invite", "Prepare", "Adopt"])
def test_a_party_that_missed_the_beginning_of_a_session_is_in_the_next_one(
    stage: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    folder = begin(tmp_path / "run", plan_of("masked", "prodlda", 6, tmp_path), five)
    machine = Machine(folder, Script({("west", stage): Kind.REQUEST_LOST}), Attendance(fewest=4))
    machine.train(5)
    assert "west" not in survivors(machine)[0]
    assert survivors(machine)[-1] == set(folder.members)
