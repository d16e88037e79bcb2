"""A recorded run is audited by several processes: what they find is what one process finds, in the same order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.auditing import given_run
from securetm.auditing.evidence import read_all_evidence
from securetm.auditing.given_run import OnRun, TrialsMade, TrialsToMake, processes
from securetm.auditing.plans import AuditPlan, Trial, read_audit_plan
from securetm.auditing.record import flat
from securetm.auditing.runner import audit
from securetm.auditing.trials import is_for, new_secret
from tests.repeatable import drawn_from

from .conftest import Recorded, write_plan

ATTACKS = (
    "rare_words",
    "traffic",
    "vocabulary_leakage",
    "prepared_weights",
)


def _plan(recorded: Recorded) -> AuditPlan:
    full, given = read_audit_plan("full"), recorded("masked", 25)
    trials = tuple(trial for trial in full.trials if trial.attack in ATTACKS and is_for(trial, given))
    assert {trial.attack for trial in trials} == set(ATTACKS)
    return replace(full, trials=trials)


def _found(recorded: Recorded, workers: int) -> list[dict[str, Any]]:
    plan = _plan(recorded)  # the run is made here, if it is not there yet
    with drawn_from("what the judge draws"):
        found = audit(plan, recorded("masked", 25).path, workers=workers).findings
    return [{name: value for name, value in flat(one).items() if name != "seconds"} for one in found]


def test_two_processes_find_what_one_finds_in_the_same_order(recorded: Recorded) -> None:
    alone = _found(recorded, 1)
    assert len({one["attack"] for one in alone}) == len(ATTACKS)
    assert _found(recorded, 2) == alone


@pytest.mark.slow
def test_results_are_put_in_the_order_of_the_trials(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backwards:
        workers = 1

        def map(self, work: Any, tasks: Any) -> Any:
            return reversed([work(task) for task in tasks])

        def close(self) -> None:
            pass

    expected = _found(recorded, 1)
    monkeypatch.setattr(given_run, "crew_of", lambda _: Backwards())
    assert _found(recorded, 1) == expected


def test_another_secret_asks_something_else(recorded: Recorded) -> None:
    given = recorded("masked", 25)
    (asked,) = [trial for trial in _plan(recorded).trials if trial.attack == "rare_words"][:1]

    def found(secret: bytes) -> list[Any]:
        work = OnRun(given.path, given.path.parent, 0, 0, secret)
        return [one.outcome.examples for one in work(TrialsToMake(0, (replace(asked, expect_fail="masked"),))).found[0]]

    secrets = [new_secret() for _ in range(4)]
    assert found(secrets[0]) == found(secrets[0])
    assert any(found(secrets[0]) != found(one) for one in secrets[1:])


def test_as_many_processes_as_cores_at_most_four_and_no_more_than_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securetm.auditing.given_run._cores", lambda: 16)
    assert [processes(0, 20), processes(0, 3), processes(7, 20), processes(2, 0)] == [4, 3, 7, 1]
    monkeypatch.setattr("securetm.auditing.given_run._cores", lambda: 2)
    assert processes(0, 20) == 2


def test_no_time_for_shadow_models_is_said_by_the_worker_that_measured_one(recorded: Recorded) -> None:
    given = recorded("masked", 25)
    (trial,) = [one for one in read_audit_plan("full").trials if _is_membership(one)][:1]
    work = OnRun(given.path, given.path.parent, 0, 0, new_secret())
    task = TrialsToMake(3, (replace(trial, expect_fail="masked"),), until=0.0)
    made = work(task)
    assert isinstance(made, TrialsMade)
    assert (made.number, made.found) == (3, ())
    assert made.left is not None
    assert made.left < 0 < made.needed


def _is_membership(trial: Trial) -> bool:
    return trial.attack == "membership" and not any((trial.canaries, trial.without, trial.liars))


@pytest.mark.slow
def test_runs_of_its_own_show_the_same_in_two_processes(documents_file: Path, tmp_path: Path) -> None:
    plan = read_audit_plan(write_plan(tmp_path / "small.toml", documents_file, profiles=["open"], batch=25))
    other = replace(plan.trials[0], run={**plan.trials[0].run, "seed": 5})
    longer, runs, kept = replace(plan, trials=(*plan.trials, other)), tmp_path / "runs", tmp_path / "evidence"
    alone, beside = audit(longer).findings, audit(longer, workers=2, keep=runs, evidence=kept).findings
    assert [one.outcome.measured for one in alone] == [one.outcome.measured for one in beside]
    assert [one.attempt for one in alone] == [one.attempt for one in beside]
    assert sorted(path.name for path in runs.iterdir()) == ["part-1", "part-2"]
    assert len(read_all_evidence(kept)[0].findings) == 2
    assert all(one.run.kept for one in audit(longer, workers=2, evidence=kept).findings)
