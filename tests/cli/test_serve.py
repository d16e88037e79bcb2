"""`securetm serve` as an operator meets it: every way in which it cannot go on has a name and says what to do."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securetm.credentials.homes import KEYS
from securetm.credentials.keys import Keys
from securetm.credentials.roster import read_roster, write_roster
from securetm.federation.folder import LOG
from securetm.federation.network.dialing import Dialer
from securetm.federation.network.events import Agreed, AnotherPlan
from securetm.stages import Unwatched
from securetm.trial.files import TrialFolder, make_trial

from ..forking import command, forking
from .conftest import Said, securetm

pytestmark = pytest.mark.own_draws  # the coordinator of these tests runs in threads and processes of its own
LONG = 120.0  # seconds that a test waits for what takes one


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TrialFolder:
    return make_trial(tmp_path_factory.mktemp("made") / "trial", "masked", 5, Unwatched())


@pytest.fixture
def trial(made: TrialFolder, tmp_path: Path) -> TrialFolder:
    """A trial of this test's own."""
    shutil.copytree(made.path, tmp_path / "trial")
    return TrialFolder(tmp_path / "trial", made.parties)


def serve(trial: TrialFolder, *settings: str) -> Said:
    chosen = ("coordinator.patience=0.2", *settings)
    return securetm("serve", str(trial.plan), "--log", *(part for pair in chosen for part in ("--set", pair)))


def run_folder(trial: TrialFolder) -> Path:
    return trial.coordinator / "run"


def events(trial: TrialFolder) -> list[dict[str, Any]]:
    path = run_folder(trial) / LOG
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


@pytest.mark.slow
def test_nobody_comes(trial: TrialFolder) -> None:
    said = serve(trial)
    assert said.code == 3
    for wanted in ("numpy, scikit-learn, scipy", "did not come within 0 seconds (0 of 5", "nobody was refused"):
        assert wanted in said.err
    assert f"hint: ask these parties what `securetm join` says; then go on with `securetm serve {trial.plan}" in said.err
    assert [event["event"] for event in events(trial)] == ["started", "waiting", "failed"]
    assert serve(trial).code == 3  # the folder is whole, and the same command goes on


def test_ports_that_are_taken(trial: TrialFolder) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listening = serve(trial, f"coordinator.listen=127.0.0.1:{port}")
        showing = serve(trial, f"coordinator.status={port}")
        measuring = serve(trial, f"coordinator.metrics=127.0.0.1:{port}")
    assert (listening.code, showing.code, measuring.code) == (2, 2, 2)
    assert f"listen at 127.0.0.1:{port}" in listening.err
    assert f"nothing can listen at 127.0.0.1:{port}" in showing.err
    assert f"nothing can listen at 127.0.0.1:{port}" in measuring.err


def test_a_roster_that_is_missing_or_that_nobody_accepted(trial: TrialFolder) -> None:
    path = trial.coordinator / "roster.toml"
    roster = read_roster(path)
    write_roster(path, replace(roster, version=roster.version + 1, signatures={}))
    said = serve(trial)
    assert said.code == 2
    assert "securetm keys accept" in said.err
    path.unlink()
    said = serve(trial)
    assert (said.code, f"{path} does not exist" in said.err) == (2, True)


def test_the_keys_of_somebody_else(trial: TrialFolder) -> None:
    keys = trial.coordinator / "home" / KEYS
    shutil.rmtree(keys)
    shutil.copytree(trial.party("numpy") / "home" / KEYS, keys)
    said = serve(trial)
    assert said.code == 2
    assert "coordinator" in said.err
    wrong = serve(trial, "coordinator.keys=home")
    assert (wrong.code, "must be the folder `keys`" in wrong.err) == (2, True)


def test_a_budget_without_a_unit(trial: TrialFolder) -> None:
    said = serve(trial, "profile=dp-distributed", "privacy.epsilon=8")
    assert said.code == 2
    assert "the plan does not say whom the budget of profile dp-distributed protects" in said.err
    assert not run_folder(trial).exists()


def test_survivors_with_which_no_round_would_end(trial: TrialFolder) -> None:
    """Refused when the plan is read: parties would refuse by name (`NotWitnessed`) until nobody has patience."""
    paid = ("profile=dp-distributed", "privacy.unit=document", "privacy.noise=1.0")
    few = serve(trial, *paid, "coordinator.survivors=4")
    assert few.code == 2
    assert "must be all, or at least 5 of these 5 parties" in few.err
    assert "a party answers once 4 others have signed its ledger, so with 6 parties one may be missing" in few.err
    assert not run_folder(trial).exists()
    said = serve(trial, "coordinator.survivors=3").err
    assert "must be all, or at least 4 of these 5 parties: under masked a sum needs so many" in said
    assert serve(trial, "coordinator.survivors=4").code == 3  # nobody comes


def test_another_plan_in_the_same_folder(trial: TrialFolder) -> None:
    serve(trial)
    said = serve(trial, "seed=7")
    assert (said.code, "holds a run under another plan" in said.err) == (2, True)


def test_a_full_disk_is_named_and_the_run_goes_on_later(trial: TrialFolder) -> None:
    code, _, err = command("serve", str(trial.plan), "--log", limits={resource.RLIMIT_FSIZE: 512})
    assert code == 2
    assert "cannot be written" in err
    assert serve(trial).code == 3


# ---- a process that is told to stop, and a party that is turned away ---------------------------------------------------


@contextmanager
def serving(trial: TrialFolder, place: Path) -> Iterator[Any]:
    """The command in a process of its own, which listens already."""
    process = forking().Process(target=_serve, args=(str(trial.plan), str(place / "err")))
    process.start()
    try:
        end = time.monotonic() + LONG
        while not any(event["event"] == "waiting" for event in events(trial)):
            assert process.is_alive(), (place / "err").read_text("utf-8")
            assert time.monotonic() < end
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.join()


def _serve(plan: str, err: str) -> None:
    os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT, 0o600), 2)
    import sys

    from securetm.cli.main import main

    sys.argv = ["securetm", "serve", plan, "--log"]
    main()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_says_how_to_go_on(trial: TrialFolder, tmp_path: Path, number: int) -> None:
    with serving(trial, tmp_path) as process:
        os.kill(process.pid, number)
        process.join(LONG)
        assert process.exitcode == 3
    said = (tmp_path / "err").read_text("utf-8")
    assert "the coordinator was stopped after round 0; nothing is lost" in said
    assert f"go on with `securetm serve {trial.plan}`" in said
    assert events(trial)[-1]["event"] == "stopped"
    assert "Traceback" not in said


def test_a_party_with_another_plan_is_turned_away_by_name(trial: TrialFolder, tmp_path: Path) -> None:
    name, roster = "numpy", read_roster(trial.coordinator / "roster.toml")
    keys = Keys.open(trial.party(name) / "home" / KEYS)
    with serving(trial, tmp_path) as process:
        dialer = Dialer(name, keys, roster, Agreed(bytes(32), bytes(32)), lambda: 1 << 20)
        with pytest.raises(AnotherPlan):
            dialer.run(lambda request: request, threading.Event())
        os.kill(process.pid, signal.SIGTERM)
        process.join(LONG)
    rejected = [event for event in events(trial) if event["event"] == "rejected"]
    assert {event["party"] for event in rejected} == {name}
    assert {event["refusal"] for event in rejected} == {"AnotherPlan"}
