"""Random faults, two hundred to a run: it ends with the same model as without them, and nobody gave away what it must not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from securetm.corpus.corpus import Corpus
from securetm.federation.coordinator import training
from securetm.federation.coordinator.rounds import Attendance
from securetm.federation.folder import begin
from securetm.federation.party.answering import Answering

from .conftest import plan_of
from .machine import Machine, Schedule, same, undisturbed
from .watching import charges

# Of each run the messages between two faults, at most. Most sessions end before their first round does.
APART = {"open": 24, "masked": 60, "dp-distributed": 70}
CASES = [("open", "lda"), ("open", "prodlda"), ("masked", "lda"), ("masked", "prodlda"), ("dp-distributed", "prodlda")]
FEW, MANY = 15, 200


@pytest.fixture(autouse=True)
def _kept_after_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SECONDS_BETWEEN_KEEPS", 0.0)


SHORT = [(FEW, "masked", "prodlda"), pytest.param(FEW, "open", "lda", marks=pytest.mark.slow)]
LONG = [pytest.param(MANY, *case, marks=pytest.mark.faults) for case in CASES]


@pytest.mark.parametrize(("faults", "profile", "model"), [*SHORT, *LONG])
def test_the_model_is_the_same_as_without_faults(
    faults: int, profile: str, model: str, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = plan_of(profile, model, faults // 2, tmp_path)
    machine = Machine(begin(tmp_path / "run", plan, five), Schedule(7, faults, APART[profile]))
    trained = machine.train(10 * faults)
    same(trained, undisturbed(begin(tmp_path / "unbroken", plan, five)))
    machine.monitor.check()
    assert len(machine.schedule.struck) >= faults


@pytest.mark.faults
@pytest.mark.parametrize("faults", [FEW, MANY])
@pytest.mark.parametrize("profile", ["open", "masked", "dp-distributed"])
def test_a_run_that_goes_on_without_parties_ends_too(
    profile: str, faults: int, five: Mapping[str, Corpus], tmp_path: Path
) -> None:
    plan = plan_of(profile, "prodlda", faults, tmp_path)
    machine = Machine(begin(tmp_path / "run", plan, five), Schedule(11, faults, APART[profile]), Attendance(fewest=4))
    machine.train(10 * faults)
    machine.monitor.check()


@pytest.mark.slow
@pytest.mark.parametrize("faults", [FEW, pytest.param(MANY, marks=pytest.mark.faults)])
def test_what_is_computed_was_paid_for(
    faults: int, five: Mapping[str, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer may be paid for twice if its party died over it, and none is given that its ledger does not have."""
    computed: dict[tuple[str, str, int], int] = {}
    compute = Answering.clipped_answer

    def counted(self: Answering, *about: object) -> object:
        at = (self.own.name, self.ask.question, self.ask.serial)
        computed[at] = computed.get(at, 0) + 1
        return compute(self, *about)  # type: ignore[arg-type]

    monkeypatch.setattr(Answering, "clipped_answer", counted)
    plan = plan_of("dp-distributed", "prodlda", faults // 2, tmp_path)
    machine = Machine(begin(tmp_path / "run", plan, five), Schedule(3, faults, APART["dp-distributed"]))
    machine.train(10 * faults)
    paid = charges(machine.folder)
    assert {at: times for at, times in computed.items() if paid.get(at, 0) < times} == {}
    assert {at for at in paid if paid[at] > computed.get(at, 0) + machine.monitor.kills[at[0], at[1], at[2] - 1]} == set()
