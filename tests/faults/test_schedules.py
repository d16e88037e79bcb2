"""Random faults, two hundred to a run: it ends with the same model as without them, and nobody gave away what it must not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation import training
from securetm.federation.folder import begin

from .conftest import plan_of
from .machine import Machine, Schedule, same, undisturbed

# Of each run the messages between two faults, at most. Most sessions end before their first round does.
APART = {"open": 24, "masked": 60, "dp-distributed": 70}
CASES = [("open", "lda"), ("open", "prodlda"), ("masked", "lda"), ("masked", "prodlda"), ("dp-distributed", "prodlda")]
FEW, MANY = 15, 200


@pytest.fixture(autouse=True)
def _kept_after_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SECONDS_BETWEEN_KEEPS", 0.0)


@pytest.mark.parametrize("faults", [FEW, pytest.param(MANY, marks=pytest.mark.faults)])
@pytest.mark.parametrize(("profile", "model"), CASES, ids=map("-".join, CASES))
def test_the_model_is_the_same_as_without_faults(
    profile: str, model: str, faults: int, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = plan_of(profile, model, faults // 2, tmp_path)
    machine = Machine(begin(tmp_path / "run", plan, five), Schedule(7, faults, APART[profile]))
    trained = machine.train(10 * faults)
    same(trained, undisturbed(begin(tmp_path / "unbroken", plan, five)))
    machine.monitor.check()
    assert len(machine.schedule.struck) >= faults
