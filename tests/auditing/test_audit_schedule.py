"""A recorded run is audited in the time that is given: what is tried first, what is not begun, and how it is repeated."""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from securetm.auditing import given_run
from securetm.auditing.given_run import PlannedTrial, TimeForAudit, expected, fewest_others, in_time, planned, rounds_in_time
from securetm.auditing.parts.membership_game import allowed_false_positives
from securetm.auditing.plans import read_audit_plan
from securetm.auditing.runner import audit
from securetm.auditing.trials import is_for
from securetm.auditing.verdicts import of_each
from securetm.corpus.corpus import Corpus
from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import train
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched
from tests.cli.conftest import securetm

from .conftest import Recorded, write_plan

TOLD = "members told at 1 % false alarms (likelihood ratio)"


@pytest.mark.parametrize(("share", "confidence"), [(0.001, 0.95), (0.01, 0.95), (0.001, 0.999)])
def test_as_many_others_are_needed_as_the_threshold_needs(share: float, confidence: float) -> None:
    needed = fewest_others(share, confidence)
    assert allowed_false_positives(needed, share, of_each(confidence)) >= 0
    assert allowed_false_positives(needed - 1, share, of_each(confidence)) < 0


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


def test_less_is_begun_where_attacks_take_longer_than_expected(
    tmp_path: Path, documents_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    one = PlannedTrial(read_audit_plan(write_plan(tmp_path / "given.toml", documents_file)).trials[0], 10.0)
    clock = TimeForAudit(120.0, begun=0.0)
    now[0] = 20.0
    assert clock.left == 100.0
    clock.took(one, 40.0)
    assert clock.left == 25.0
    quick = TimeForAudit(120.0, begun=20.0)
    quick.took(one, 1.0)
    assert quick.left == 120.0


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


@pytest.mark.slow
def test_the_command_that_repeats_an_audit_works_as_it_is_printed(
    tmp_path: Path, documents_file: Path, recorded: Recorded
) -> None:
    plan = write_plan(tmp_path / "with a space.toml".replace(" ", "_"), documents_file)
    (again,) = audit(plan, recorded("masked", 25).path, minutes=5).reproduce
    command = f"{shlex.quote(sys.executable)} -m securetm.cli.main {again.removeprefix('securetm ')} --json"
    done = subprocess.run(command, shell=True, capture_output=True, check=False, env={**os.environ}, timeout=600)
    assert done.returncode == 0, done.stderr.decode()


def test_a_run_over_a_corpus_on_disk_is_audited_beside_a_baseline_over_the_same(tmp_path: Path, documents_file: Path) -> None:
    stored, run = str(tmp_path / "stored"), str(tmp_path / "run")
    assert securetm("corpus", "build", str(documents_file), "--out", stored).code == 0
    model = ("--model", "prodlda", "--set", "model.batch=25", "--set", "model.hidden=64", "--topics", "5", "--rounds", "1")
    words = ("--set", "vocabulary.min_documents=1", "--set", "vocabulary.most_candidates=1000", "--no-comparison")
    made = securetm("run", "--corpus", stored, "--partition", "column", *model, *words, "--record", "--out", run)
    assert made.code == 0, made.err
    effort = {"rounds": 1, "documents": 100}
    plan = write_plan(tmp_path / "given.toml", documents_file, effort=effort)
    found = audit(plan, run)
    assert [one.outcome.verdict for one in found.findings] == ["refuted", "not refuted"]
