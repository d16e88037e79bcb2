"""Six processes over mutual TLS learn what one simulation learns, and none of them is left running, whatever ends them.

Whole runs are slow ones: tests/network/test_what_a_relay_sees.py has the same model over the same network in one process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from securetm.errors import Failed
from securetm.trial.files import TrialFolder
from securetm.trial.processes import MemberProcesses, Simulated, same_models

from ..cli.conftest import securetm

PATIENCE = 120.0  # seconds, far more than is needed


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> TrialFolder:
    """A trial that ran to its end, with the screen that it ended with in `said.txt`."""
    path = tmp_path_factory.mktemp("place") / "trial"
    said = securetm("init", str(path), "--rounds", "4", "--run", "--json")
    assert said.code == 0, said.err
    (path / "said.txt").write_text(said.err, "utf-8")
    assert (said.json["copies"], len(said.json["model"])) == (6, 64)
    return TrialFolder(path, tuple(said.json["parties"]))


@pytest.mark.slow
def test_the_models_are_the_same_bit_for_bit(ended: TrialFolder) -> None:
    models = [path.read_bytes() for path in sorted(ended.path.rglob("model.safetensors"))]
    assert len(models) >= 7
    assert len(set(models)) == 1


@pytest.mark.slow
def test_every_role_has_what_may_leave_in_a_folder_of_its_own(ended: TrialFolder) -> None:
    statements = sorted(path.parent for path in ended.path.rglob("statement.json"))
    assert len(statements) == 7  # of five parties, of the coordinator, and of the simulation beside them
    for release in statements:
        said = securetm("report", "--verify", str(release), "--json")
        assert said.code == 0, said.out
        assert {"model.safetensors", "topics.csv", "statement.html"} <= set(said.json["same"])
    (own,) = ended.party("scipy").rglob("statement.json")
    who = json.loads(own.read_text("utf-8"))["who"]
    assert any("This is the statement of scipy" in one for one in who)
    assert all(name in who[0] for name in ended.parties)
    assert "sees no party's ledger" in (ended.run / "release" / "statement.md").read_text("utf-8")


@pytest.mark.slow
def test_the_last_screen_says_what_was_learned_sent_and_comes_next(ended: TrialFolder) -> None:
    said = " ".join((ended.path / "said.txt").read_text("utf-8").split())
    for part in (
        "Topics of the shared model (10 of 10)",
        "What each party kept, sent and got",
        "What nobody saw:",
        "even if 2 parties help the coordinator",
        "What is not hidden:",
        "The same model, bit for bit: 4 rounds in",
        f"securetm topics {ended.run}",
        "securetm keys new NAME",
    ):
        assert part in said
    assert securetm("topics", str(ended.run)).code == 0


@pytest.mark.slow
def test_another_model_at_one_party_is_found(ended: TrialFolder) -> None:
    (model,) = ended.party("scipy").rglob("model.safetensors")
    before = model.read_bytes()
    model.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    try:
        with pytest.raises(Failed, match="the model of scipy is not that of the others"):
            same_models(ended, Simulated({}, {}), 0.0)
    finally:
        model.write_bytes(before)


@pytest.mark.slow
def test_a_process_that_fails_ends_the_others_and_is_named(made: TrialFolder, tmp_path: Path) -> None:
    with MemberProcesses(tmp_path) as processes:
        processes.start("waiting", made.commands[1])
        processes.start("absent", ["join", str(tmp_path / "PARTY.toml")])
        processes.members[1].running.wait(PATIENCE)
        with pytest.raises(Failed, match=r"the process of absent ended with exit code 2; .*does not exist") as raised:
            processes.all_ended()
    assert raised.value.facts()["path"] == str(tmp_path / "absent.log")
    assert all(one.code is not None for one in processes.members)


@pytest.mark.slow
def test_ctrl_c_ends_all_of_them(made: TrialFolder) -> None:
    running = subprocess.Popen([sys.executable, "-c", RUN, made.path, *made.parties], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    numbers = [int(number) for number in running.stdout.readline().split()]  # written once a round has ended
    assert len(numbers) == 6
    running.send_signal(signal.SIGINT)
    assert running.wait(PATIENCE) != 0
    running.stdout.close()
    assert [number for number in numbers if runs(number)] == []


@pytest.fixture
def made(tmp_path: Path) -> TrialFolder:
    """The files of a trial that would take hours."""
    said = securetm("init", str(tmp_path / "trial"), "--rounds", "100000", "--json")
    return TrialFolder(Path(said.json["folder"]), tuple(said.json["parties"]))


RUN = """
import sys
import time
from collections.abc import Callable
from pathlib import Path
from securetm.trial.files import TrialFolder
from securetm.trial.processes import run_processes

def show(members, events):
    if any(event["event"] == "round" for event in events):
        print(*(one.number for one in members), flush=True)

run_processes(TrialFolder(Path(sys.argv[1]), tuple(sys.argv[2:])), show)
"""


def runs(number: int) -> bool:
    """Whether there is a process of that number."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "said"), [("dp-distributed", "One model at all members"), ("open", "from which documents can be")]
)
def test_other_profiles_end_with_one_model_too(tmp_path: Path, profile: str, said: str) -> None:
    ended = securetm("init", str(tmp_path / "trial"), "--profile", profile, "--rounds", "3", "--run")
    assert (ended.code, said in ended.out) == (0, True), ended.err
