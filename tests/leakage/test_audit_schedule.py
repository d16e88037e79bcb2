"""A recorded run is audited in the time that is given: what is tried first, what is not begun, and how it is repeated."""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from securetm.leakage.audit_plans import read_audit_plan
from securetm.leakage.audit_schedule import expected, fewest_others, planned
from securetm.leakage.auditor import audit
from securetm.leakage.intervals import of_each
from securetm.leakage.leakage_errors import NothingInTime
from securetm.leakage.parts.roc import allowed_false_positives
from securetm.leakage.untried import is_for

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
    seconds = [one.seconds for one in in_order]
    assert seconds == sorted(seconds)
    assert len(in_order) + len(reasons) < len(fits)
    assert all(math.isfinite(expected(one.trial, given)) for one in in_order)


def test_membership_says_before_it_begins_that_it_needs_more_others(
    tmp_path: Path, documents_file: Path, recorded: Recorded
) -> None:
    effort = {"rounds": 1, "shadows": 1000}
    plan = write_plan(tmp_path / "who.toml", documents_file, attack="membership", measure=TOLD, effort=effort, **_READER)
    with pytest.raises(NothingInTime, match="needs 368 documents that were not trained on, and this run has"):
        audit(plan, recorded("masked", 25).path)


_READER = {
    "threat_model": "model_reader",
    "adversary": "model reader",
    "claim": "the total is differentially private",
    "profiles": ["open"],
}


def test_what_takes_too_long_is_named_and_not_begun(tmp_path: Path, documents_file: Path, recorded: Recorded) -> None:
    plan = write_plan(tmp_path / "given.toml", documents_file)
    with pytest.raises(NothingInTime, match="give more with --minutes"):
        audit(plan, recorded("masked", 25).path, minutes=0.01)


@pytest.mark.slow
def test_the_command_that_repeats_an_audit_works_as_it_is_printed(
    tmp_path: Path, documents_file: Path, recorded: Recorded
) -> None:
    plan = write_plan(tmp_path / "with a space.toml".replace(" ", "_"), documents_file)
    (again,) = audit(plan, recorded("masked", 25).path, minutes=5).reproduce
    command = f"{shlex.quote(sys.executable)} -m securetm.cli.main {again.removeprefix('securetm ')} --json"
    done = subprocess.run(command, shell=True, capture_output=True, check=False, env={**os.environ}, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
