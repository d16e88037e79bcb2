"""A recorded run is audited in the time that is given, by several processes, and goes on where it was interrupted."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.auditing import given_run
from securetm.auditing.evidence import read_all_evidence
from securetm.auditing.given_run import (
    OnRun,
    TrialsMade,
    TrialsToMake,
    Unfinished,
    expected,
    in_time,
    planned,
    rounds_in_time,
)
from securetm.auditing.plans import AuditPlan, Trial, read_audit_plan
from securetm.auditing.record import flat
from securetm.auditing.runner import audit
from securetm.auditing.trials import is_for, new_secret
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import RunFolder, begin, reopen
from securetm.federation.simulation.simulation import train
from securetm.federation.store import DamagedStore
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched
from tests.cli.conftest import securetm
from tests.repeatable import drawn_from

from .conftest import Recorded, write_plan

TOLD = "members told at 1 % false alarms (likelihood ratio)"


def test_trials_of_a_given_run_are_made_once_and_begin_with_what_takes_least(recorded: Recorded) -> None:
    given = recorded("masked", 25)
    fits = [trial for trial in read_audit_plan("full").trials if is_for(trial, given)]
    in_order, reasons = planned(fits, given)
    once = len({one.trial.attack for one in in_order if "shadows" not in one.trial.effort})
    first = [one.seconds for one in in_order[:once]]
    assert first == sorted(first)
    assert len({one.trial.attack for one in in_order[:once]}) == once
    assert in_order[once].trial.attack in {one.trial.attack for one in in_order[:once]}
    trained = ["shadows" in one.trial.effort for one in in_order]
    assert trained == sorted(trained)
    assert len(in_order) + len(reasons) < len(fits)
    assert all(math.isfinite(expected(one.trial, given)) for one in in_order)


def test_a_baseline_has_fewer_rounds_where_its_training_would_take_most_of_the_time(
    tmp_path: Path, documents_file: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = recorded("masked", 25, 8)
    plan = write_plan(tmp_path / "given.toml", documents_file, effort={"rounds": 7, "documents": 100})
    trials = read_audit_plan(plan).trials
    assert [rounds_in_time(trials, given, limit) for limit in (math.inf, 1e6)] == [7, 7]
    monkeypatch.setattr(given_run, "seconds_of", lambda _: 80.0)
    assert [rounds_in_time(trials, given, limit) for limit in (math.inf, 160.0, 20.0)] == [7, 6, 5]


def test_a_trial_that_a_run_is_too_small_for_is_named_with_the_reason(
    tmp_path: Path, documents_file: Path, parties: Mapping[str, Corpus]
) -> None:
    """Two parties: no baseline under a profile for four, and nobody is left where two help."""
    tables = {"profile": "open", "model": {"name": "prodlda", "n_topics": 3}, "training": {"rounds": 1, "held_out": 0.2}}
    folder = begin(tmp_path / "two", plan_from_tables(tables, "a test"), dict(list(parties.items())[:2]), with_content=True)
    train(folder, Unwatched())
    one = read_audit_plan(write_plan(tmp_path / "given.toml", documents_file, profiles=["open"])).trials[0]
    trials = (one, replace(one, expect_fail="dp-central"), replace(one, helpers=2))
    in_order, reasons = planned(trials, folder)
    assert [each.trial for each in in_order] == [one]
    assert "2 parties are fewer than the 4 that profile 'dp-central' needs" in reasons[0]
    assert "2 parties help in it, and this run has 2, so nobody is left to attack" in reasons[1]


def test_members_are_told_at_more_false_alarms_where_few_documents_were_held_out(
    tmp_path: Path, documents_file: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, effort = recorded("masked", 25), {"rounds": 1, "shadows": 40}
    strict = TOLD.replace("1 %", "0.1 %")
    plan = write_plan(tmp_path / "who.toml", documents_file, attack="membership", measure=strict, effort=effort, **_READER)
    for others, said in ((100, [strict]), (400, [TOLD]), (4000, [strict])):
        monkeypatch.setattr(given_run, "_held_out", lambda _, others=others: others)
        in_order, reasons = planned(read_audit_plan(plan).trials, given)
        assert [one.trial.measure for one in in_order] == (said if others > 100 else [])
        assert bool(reasons) == (others == 100)


def test_shadow_models_are_as_many_as_the_time_allows(
    tmp_path: Path, documents_file: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, effort = recorded("masked", 25), {"rounds": 1, "shadows": 40}
    plan = write_plan(tmp_path / "who.toml", documents_file, attack="membership", measure=TOLD, effort=effort, **_READER)
    trial = read_audit_plan(plan).trials[0]
    monkeypatch.setattr(given_run, "seconds_of", lambda _: 8.0)
    whole = expected(trial, given)
    assert in_time(trial, given, whole + 1e-6) == trial
    fewer = in_time(trial, given, whole / 2)
    assert fewer is not None
    assert 10 <= fewer.effort["shadows"] < 40
    assert expected(fewer, given) <= whole / 2
    assert in_time(trial, given, whole / 10) is None


_READER = {
    "threat_model": "model_reader",
    "adversary": "model reader",
    "claim": "the total is differentially private",
    "profiles": ["open"],
}


# ---- several processes -----------------------------------------------------------------------------------------------


ATTACKS = tuple("rare_words traffic vocabulary_leakage prepared_weights".split())


def _of_attacks(recorded: Recorded) -> AuditPlan:
    full, given = read_audit_plan("full"), recorded("masked", 25)
    trials = tuple(trial for trial in full.trials if trial.attack in ATTACKS and is_for(trial, given))
    assert {trial.attack for trial in trials} == set(ATTACKS)
    return replace(full, trials=trials)


def _found_by(recorded: Recorded, workers: int) -> list[dict[str, Any]]:
    plan = _of_attacks(recorded)  # the run is made here, if it is not there yet
    with drawn_from("what the judge draws"):
        found = audit(plan, recorded("masked", 25).path, workers=workers).findings
    return [{name: value for name, value in flat(one).items() if name != "seconds"} for one in found]


@pytest.mark.slow
def test_two_processes_find_what_one_finds_in_the_same_order(recorded: Recorded) -> None:
    alone = _found_by(recorded, 1)
    assert len({one["attack"] for one in alone}) == len(ATTACKS)
    assert _found_by(recorded, 2) == alone


def test_another_secret_asks_something_else(recorded: Recorded) -> None:
    given = recorded("masked", 25)
    (asked,) = [trial for trial in _of_attacks(recorded).trials if trial.attack == "rare_words"][:1]

    def found(secret: bytes) -> list[Any]:
        work = OnRun(given.path, given.path.parent, 0, 0, secret)
        return [one.outcome.examples for one in work(TrialsToMake(0, (replace(asked, expect_fail="masked"),))).found[0]]

    secrets = [new_secret() for _ in range(4)]
    assert found(secrets[0]) == found(secrets[0])
    assert any(found(secrets[0]) != found(one) for one in secrets[1:])


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


# ---- after an interruption -------------------------------------------------------------------------------------------


# The command as it is, in a process that ends itself by a signal which nothing can catch once the first trial was kept.
_KILLED = """
import os, signal, sys
from securetm.auditing.given_run import Unfinished
keep = Unfinished.keep
def then_killed(*given):
    keep(*given)
    os.kill(os.getpid(), signal.SIGKILL)
Unfinished.keep = then_killed
from securetm.cli.main import main
sys.argv = ["securetm", *sys.argv[1:]]
main()
"""


@pytest.fixture
def run(recorded: Recorded, tmp_path: Path) -> RunFolder:
    """A recorded run that no other test audits."""
    shutil.copytree(recorded("masked", 25).path, tmp_path / "run")
    return reopen(tmp_path / "run")


@pytest.fixture
def plan(tmp_path: Path, documents_file: Path) -> Path:
    """A plan with two different trials."""
    first = write_plan(tmp_path / "two.toml", documents_file, effort={"rounds": 1, "documents": 100})
    second = write_plan(tmp_path / "more.toml", documents_file).read_text("utf-8")
    first.write_text(first.read_text("utf-8") + "\n" + second[second.index("[[trial]]") :], "utf-8")
    return first


def _made_now(run: RunFolder, plan: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], object]:
    """The rounds that each attack made now was given, and what the command said."""
    made: list[int] = []
    findings = given_run.findings

    def counting(trial: object, *rest: object) -> object:
        made.append(trial.effort["rounds"])  # type: ignore[attr-defined]
        return findings(trial, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(given_run, "findings", counting)
    return made, securetm("audit", str(plan), "--run", str(run.path), "--workers", "1", "--json")


@pytest.mark.slow
def test_a_killed_audit_goes_on_with_the_next_attack(run: RunFolder, plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", _KILLED, "audit", str(plan), "--run", str(run.path), "--workers", "2", "--json"]
    # its workers hold the same pipe for errors: reading it ends only when they have ended too
    ended = subprocess.run(command, capture_output=True, check=False, env={**os.environ}, timeout=600)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    kept = run.path / "audits" / "two.unfinished"
    assert stat.filemode(kept.stat().st_mode) == "-rw-------"
    (before,) = json.loads(kept.read_bytes())["trials"].values()
    made, said = _made_now(run, plan, monkeypatch)
    was_over = {"1 round, 100 documents": 1, "2 rounds, 100 documents": 2}[before[0]["effort"]]  # whichever worker was first
    assert made == [3 - was_over]
    assert "An audit of this run did not end: 1 trial of it" in " ".join(said.err.split())  # type: ignore[attr-defined]
    found = said.json["findings"]  # type: ignore[attr-defined]
    assert len(found) == 4
    again = [one for one in found if one["effort"] == before[0]["effort"]]
    for old, new in zip(before, again, strict=True):
        assert {name: new[name] for name in ("value", "low", "high", "verdict", "effort", "profile")} == {
            name: old[name] for name in ("value", "low", "high", "verdict", "effort", "profile")
        }
    assert not kept.exists()
    assert (run.path / "audits" / "two.json").is_file()


@pytest.mark.slow
def test_what_belongs_to_another_run_version_or_limit_is_not_used(
    run: RunFolder, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_audit_plan(plan)
    kept = _kept(read, run)
    audit(read, run.path, kept=kept, workers=1)
    again = _kept(read, run)
    assert len(again) == 2
    assert len(Unfinished(read, run, 1.0, 5)) == 0
    assert not again.findings(replace(read.trials[0], refuted_from=0.07), 0, 5)
    monkeypatch.setattr("securetm.auditing.given_run.__version__", "another")
    assert len(_kept(read, run)) == 0


def test_a_damaged_file_is_refused_by_name(run: RunFolder, plan: Path) -> None:
    read = read_audit_plan(plan)
    kept = _kept(read, run)
    audit(read, run.path, kept=kept, workers=1)
    table = json.loads(kept.path.read_bytes())
    for rows in table["trials"].values():
        rows[0]["verdict"] = 3
    kept.path.write_text(json.dumps(table))
    with pytest.raises(DamagedStore, match=r"two\.unfinished"):
        audit(read, run.path, kept=_kept(read, run), workers=1)
    kept.path.write_text("{")
    with pytest.raises(DamagedStore, match=r"two\.unfinished"):
        _kept(read, run)


def _kept(plan: AuditPlan, run: RunFolder) -> Unfinished:
    return Unfinished(plan, run, None, 5)
