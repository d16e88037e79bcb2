"""A federation of real processes on this machine, behind a relay: started, killed and frozen. It tests nothing itself."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from securetm.federation.folder import LOG
from securetm.federation.party.home import _NAMES, _SECRET
from securetm.private_files import writing
from securetm.stages import Unwatched
from securetm.trial.files import TrialFolder, free_port, make_trial

from ..federation.conftest import FIVE, texts
from ..forking import forking
from .relay import Relay

COORDINATOR = "coordinator"
LONG, WHOLE = 120.0, 400.0  # seconds that a test waits for what takes a few, and for the end of a whole run
PLAN = """
seed = 3
profile = "{profile}"
[model]
{model}
[training]
rounds = {rounds}
{training}
held_out = 0.2
[vocabulary]
min_documents = 2
max_share = 1.0
{vocabulary}
{privacy}
[coordinator]
listen = "127.0.0.1:{port}"
roster = "roster.toml"
keys = "home/keys"
out = "run"
{coordinator}
"""
JUDGED = """
stop = "held_out"  # judged, and therefore kept, after every round
every = 1
patience = 1000
"""
FOUND = "most_candidates = 500"  # words that the parties find together
PRODLDA = 'name = "prodlda"\nn_topics = 3\nhidden = 8\nbatch = 34'
PARTY = """
name = "{name}"
home = "home"
[data]
source = "documents.jsonl"
identity = "notes"
"""


class Waited(AssertionError):
    """What was waited for did not come."""


def until(true: Callable[[], Any], what: Callable[[], str], seconds: float = LONG) -> Any:
    """Waits until that is true, and returns what it was."""
    end = time.monotonic() + seconds
    while not (found := true()):
        if time.monotonic() > end:
            raise Waited(what())
        time.sleep(0.02)
    return found


@dataclass
class Running:
    """One process of the command, with what it prints."""

    process: Any
    out: Path
    err: Path

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def killed(self) -> None:
        """Ends it without a word."""
        self.signal(signal.SIGKILL)
        self.process.join()

    def ended(self, seconds: float = LONG) -> int:
        """Waits for its end, and returns the exit code."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            raise Waited(f"it does not end: {self.said()[-2000:]}")
        return int(self.process.exitcode)

    def said(self) -> str:
        """All that it printed."""
        return self.out.read_text("utf-8") + self.err.read_text("utf-8")


def start(arguments: tuple[str, ...], place: Path, limits: Mapping[int, int] | None = None) -> Running:
    """The command in a process of its own."""
    number = len(list(place.glob("*.out")))
    out, err = place / f"{number}.out", place / f"{number}.err"
    for file in (out, err):
        file.touch(0o600)
    process = forking().Process(target=_command, args=(arguments, str(out), str(err), dict(limits or {})))
    process.start()
    return Running(process, out, err)


def _command(arguments: tuple[str, ...], out: str, err: str, limits: Mapping[int, int]) -> None:
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream)
    for what, most in limits.items():
        resource.setrlimit(what, (most, resource.RLIM_INFINITY))
    sys.argv = ["securetm", *arguments]
    from securetm.cli.main import main

    main()


@dataclass
class Site:
    """Five organisations and a coordinator, each with its own folder and its own process."""

    trial: TrialFolder
    relay: Relay
    running: dict[str, Running] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        folder: Path,
        *,
        rounds: int,
        profile: str = "masked",
        vocabulary: str = FOUND,
        model: str = PRODLDA,
        training: str = JUDGED,
        privacy: str = "",
        **choice: Any,
    ) -> Site:
        """The files of a federation whose parties reach the coordinator through the relay."""
        port = free_port()
        site = cls.__new__(cls)
        relay = Relay(port, lambda pid: site.name_of(pid))
        trial = make_trial(folder, profile, rounds, Unwatched(), port=relay.port)
        settings = {"deadline": 20, "patience": 300, **choice}
        coordinator = "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
        plan = PLAN.format(
            profile=profile,
            model=model,
            rounds=rounds,
            training=training,
            vocabulary=vocabulary,
            privacy=privacy,
            port=port,
            coordinator=coordinator,
        )
        trial.plan.write_text(plan, "utf-8")
        for seed, (name, subject) in enumerate(zip(trial.parties, FIVE, strict=True)):
            here = trial.party(name)
            (here / "plan.toml").write_text(plan, "utf-8")
            lines = (json.dumps({"text": text}) for text in texts(FIVE[subject], 60, seed))
            (here / "documents.jsonl").write_text("\n".join(lines), "utf-8")
            trial.file(name).write_text(PARTY.format(name=name), "utf-8")
            with writing(here / "home" / _NAMES) as secret:  # the same documents have the same names in every site
                secret.write(seed.to_bytes(_SECRET, "big"))
        site.__init__(trial, relay)  # type: ignore[misc]
        return site

    def name_of(self, pid: int) -> str:
        """Whose process that is."""
        return next((name for name, running in self.running.items() if running.pid == pid), "")

    def start(self, *names: str, limits: Mapping[int, int] | None = None) -> None:
        """Starts these roles."""
        for name in names:
            place = self.place(name)
            what = (
                ("serve", str(self.trial.plan), "--log", "--json")
                if name == COORDINATOR
                else ("join", str(self.trial.file(name)), "--json")
            )
            self.running[name] = start(what, place, limits)

    def place(self, name: str) -> Path:
        """The folder of that role."""
        return self.trial.coordinator if name == COORDINATOR else self.trial.party(name)

    def start_all(self) -> None:
        """Starts everybody."""
        self.start(COORDINATOR, *self.trial.parties)

    def log(self, *events: str) -> list[dict[str, Any]]:
        """The coordinator's log, of these events or of all."""
        path = self.trial.run / LOG
        written = path.read_text("utf-8").splitlines() if path.is_file() else []
        lines = [json.loads(line) for line in written if line.endswith("}")]
        return [line for line in lines if not events or line["event"] in events]

    def is_over(self) -> bool:
        """Whether the model is made."""
        return bool(self.log("trained"))

    def killed(self, *names: str) -> None:
        """Ends these processes without a word, and starts them again."""
        for name in names:
            self.running[name].signal(signal.SIGKILL)
        for name in names:
            self.running[name].process.join()
        self.start(*names)

    def ended(self) -> list[str]:
        """Which of the processes have ended."""
        return [name for name, running in self.running.items() if running.process.exitcode is not None]

    def finish(self) -> dict[str, int]:
        """Waits for everybody's end, and returns the exit codes."""
        assert self.running[COORDINATOR].ended(WHOLE) == 0, self.standing()
        return {name: running.ended() for name, running in self.running.items()}

    def standing(self) -> str:
        """What the processes said last."""
        return "\n".join(
            f"{name}: {running.process.exitcode} {running.said()[-600:]}" for name, running in self.running.items()
        )

    @property
    def model(self) -> bytes:
        """The finished model as the coordinator has it."""
        return (self.trial.run / "release" / "model.safetensors").read_bytes()

    def close(self) -> None:
        """Ends what still runs."""
        for running in self.running.values():
            running.signal(signal.SIGKILL)
            running.process.join()
        self.relay.close()
