"""Six processes that exchange letters learn what a simulation learns, also where some are killed and started again."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from securetm.credentials.roster import COORDINATOR
from securetm.stages import Unwatched
from securetm.trial.files import make_trial
from securetm.trial.processes import MemberProcesses, run_simulation, same_models

PATIENCE = 500.0  # seconds, far more than is needed
KILLED_AT = ((COORDINATOR, 12), ("numpy", 18), (COORDINATOR, 27), ("torch", 40))  # after so many answers came


@pytest.mark.faults
def test_six_processes_of_which_some_are_killed(tmp_path: Path) -> None:
    trial = make_trial(tmp_path / "trial", "masked", 1, Unwatched())
    simulated = run_simulation(trial, Unwatched())
    begun, waiting = time.monotonic(), list(KILLED_AT)
    commands = dict(zip((COORDINATOR, *trial.parties), trial.commands, strict=True))
    with MemberProcesses(tmp_path) as processes:

        def start(name: str) -> None:
            processes.start(name, [*commands[name], "--courier", str(trial.path / "letters")])

        for name in commands:
            start(name)
        while not processes.all_ended():
            assert time.monotonic() - begun < PATIENCE, [one.log.read_text("utf-8") for one in processes.members]
            came = len(list((trial.run / "courier" / "in").glob("*")))
            if waiting and came >= waiting[0][1]:
                name, _ = waiting.pop(0)
                (killed,) = [one for one in processes.members if one.name == name]
                if killed.code is None:
                    os.kill(killed.number, signal.SIGKILL)
                    killed.running.wait()
                    processes.members.remove(killed)
                    start(name)
            time.sleep(0.2)
    assert waiting == []
    assert same_models(trial, simulated, time.monotonic() - begun).copies == 6
