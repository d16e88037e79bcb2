"""An audit of a recorded run that was killed between two attacks: what was found is there, and is not looked for again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from securetm.auditing import given_run
from securetm.auditing.given_run import Unfinished
from securetm.auditing.plans import AuditPlan, read_audit_plan
from securetm.auditing.runner import audit
from securetm.federation.folder import RunFolder, reopen
from securetm.federation.store import DamagedStore
from tests.cli.conftest import securetm

from .conftest import Recorded, write_plan

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


def _trials(run: RunFolder, plan: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], object]:
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
    made, said = _trials(run, plan, monkeypatch)
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


def test_what_belongs_to_another_run_version_or_limit_is_not_used(
    run: RunFolder, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_audit_plan(plan)
    kept = _kept(read, run)
    audit(read, run.path, kept=kept, workers=1)
    again = _kept(read, run)
    assert len(again) == 2
    assert len(Unfinished(read, run, 1.0, 5)) == 0
    assert not again.of(replace(read.trials[0], refuted_from=0.07), 0, 5)
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
