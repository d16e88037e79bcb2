"""The probe of health: who works, who hangs, who ended, and that nothing heavy is loaded to say it."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from securetm.errors import Failed
from securetm.federation.folder import alone_in
from securetm.federation.health import PULSE, check_works, remove_stamp, renew_stamp

PLAN = {"coordinator": {"out": "run"}}


def test_a_coordinator_works_while_it_holds_its_run_and_its_network_moves(tmp_path: Path) -> None:
    plan, run = tmp_path / "plan.toml", tmp_path / "run"
    run.mkdir()
    with pytest.raises(Failed, match="no process has worked on the run"):
        check_works(plan, PLAN)
    with alone_in(run):
        with pytest.raises(Failed, match="about to begin or to end"):
            check_works(plan, PLAN)
        renew_stamp(run)
        assert check_works(plan, PLAN) == f"The coordinator of {plan} works."
        for hangs in (-3_600.0, 3_600.0):  # the second is a stamp of another machine's clock
            (run / PULSE).write_bytes(struct.pack("<d", time.monotonic() + hangs))
            with pytest.raises(Failed, match="has not moved"):
                check_works(plan, PLAN)
        remove_stamp(run)
        with pytest.raises(Failed, match="about to begin or to end"):
            check_works(plan, PLAN)
    with pytest.raises(Failed, match="no process works on the run"):
        check_works(plan, PLAN)


LIGHT = """
import sys
before = set(sys.modules)
from securetm.cli.main import main
sys.argv = ["securetm", "health", sys.argv[1]]
try:
    main()
except SystemExit as end:
    loaded = set(sys.modules) - before
    slow = {"dataclasses", "inspect", "threading", "traceback", "csv", "html", "hashlib", "json", "decimal"} & loaded
    ours = {name for name in loaded if name.startswith("securetm.") and name.count(".") > 1}
    foreign = {name for name in loaded if name.partition(".")[0] not in {*sys.stdlib_module_names, "securetm"}}
    assert end.code or (slow, foreign) == (set(), set()), (slow, foreign)
    assert end.code or ours == {"securetm.cli.main", "securetm.federation.health"}, ours
    raise
"""


def test_a_probe_answers_with_little_of_the_standard_library_and_nothing_else(tmp_path: Path) -> None:
    file, data = tmp_path / "PARTY.toml", tmp_path / "home" / "data" / "notes"
    data.mkdir(parents=True)
    file.write_text('name = "north"\nhome = "home"\n[data]\nsource = "notes.jsonl"\nidentity = "notes"\n')
    command = [sys.executable, "-c", LIGHT, str(file)]
    with alone_in(data):
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (said.returncode, said.stdout) == (0, f"The party of {file} works.\n"), said.stderr
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 3
    assert "no process works on data set notes" in said.stderr
