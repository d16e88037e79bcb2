"""Between two starts of a coordinator an organisation comes, one leaves, and one has a new identity. The run goes on."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..cli.conftest import securetm

ROUNDS = 300  # more than are done in the seconds between two checkpoints, on any machine
SECONDS = 400


def done(*arguments: str | Path) -> Any:
    """Runs a command and returns its JSON."""
    said = securetm(*map(str, arguments), "--json")
    assert said.code == 0, said.err
    return said.json


class Trial:
    """A federation of processes, and the roster that its operator sends around."""

    def __init__(self, folder: Path) -> None:
        done("init", folder, "--rounds", str(ROUNDS))
        self.parties, self.hub, self.logs = folder / "parties", folder / "coordinator", folder.parent
        self.names = sorted(path.name for path in self.parties.iterdir())

    def operator(self, *command: str) -> Any:
        return done("keys", *command, "--roster", self.hub / "roster.toml", "--home", self.hub / "home")

    def accepted_by(self, *names: str) -> None:
        """Each of them gets the roster, compares its fingerprint, and changes nothing else."""
        fingerprint = done("keys", "roster", "show", self.hub / "roster.toml")["fingerprint"]
        for name in names:
            shutil.copy(self.hub / "roster.toml", self.parties / name / "roster.toml")
            home = self.parties / name / "home"
            done("keys", "accept", self.parties / name / "roster.toml", "--home", home, "--fingerprint", fingerprint)

    def come(self, name: str, like: str) -> None:
        """An organisation with keys of its own, and with the plan and settings of another."""
        (self.parties / name).mkdir()
        for file in ("plan.toml", "documents.jsonl"):
            shutil.copy(self.parties / like / file, self.parties / name / file)
        text = (self.parties / like / "PARTY.toml").read_text().replace(f'"{like}"', f'"{name}"')
        (self.parties / name / "PARTY.toml").write_text(text)
        done("keys", "new", name, "--home", self.parties / name / "home")

    def serves(self, stack: ExitStack) -> subprocess.Popen[str]:
        """The coordinator, whose log is its standard error."""
        return stack.enter_context(started("serve", self.hub / "plan.toml", "--log", stderr=subprocess.PIPE))

    def join(self, stack: ExitStack, *names: str) -> dict[str, subprocess.Popen[str]]:
        """These parties, each with what it says in a file."""
        joined = {}
        for name in names:
            log = stack.enter_context((self.logs / f"{name}.err").open("w"))
            joined[name] = stack.enter_context(started("join", self.parties / name / "PARTY.toml", "--json", stderr=log))
        return joined


@contextmanager
def started(*arguments: str | Path, stderr: Any) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "securetm.cli.main", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


def events(serve: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """The coordinator's log, line by line."""
    assert serve.stderr is not None
    for line in serve.stderr:
        if line.startswith("{"):
            yield json.loads(line)


@pytest.mark.slow
def test_one_comes_one_leaves_and_one_has_a_new_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trial = Trial(tmp_path / "trial")
    gone, renewed, *stay = trial.names
    with ExitStack() as stack:
        serve, joined = trial.serves(stack), trial.join(stack, *trial.names)
        log = events(serve)
        kept = next(one["round"] for one in log if one["event"] == "kept" and one["round"])
        for process in (serve, *joined.values()):
            process.send_signal(signal.SIGTERM)
        kept = max([kept, *(one["round"] for one in log if one["event"] == "kept")])
        assert {process.wait(SECONDS) for process in (serve, *joined.values())} == {3}
        assert kept < ROUNDS
    trial.come("zebra", like=stay[0])
    done("keys", "rotate", "--identity", "--home", trial.parties / renewed / "home")
    trial.operator("issue", "zebra.request", f"{renewed}.request")
    trial.operator("roster", "remove", gone)
    now = (renewed, *stay, "zebra")
    trial.accepted_by(*now)
    with ExitStack() as stack:
        serve, left = trial.serves(stack), trial.join(stack, gone)[gone]
        assert left.wait(SECONDS) == 3
        joined = trial.join(stack, *now)
        seen = list(events(serve))
        assert serve.wait(SECONDS) == 0
        assert {name: process.wait(SECONDS) for name, process in joined.items()} == dict.fromkeys(now, 0)
    assert [one["round"] for one in seen if one["event"] == "round"] == list(range(kept + 1, ROUNDS + 1))
    assert {one["party"] for one in seen if one["event"] == "connected"} == {*now}
    assert "CertificateNotInRoster" in (trial.logs / f"{gone}.err").read_text()
    models = {path.read_bytes() for name in now for path in (trial.parties / name).rglob("model.safetensors")}
    assert models == {(trial.hub / "run" / "release" / "model.safetensors").read_bytes()}
