"""Runs a trial as a simulation in this process and as six processes over TLS. The models must be the same, bit for bit."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from securetm.contracts import Profile
from securetm.corpus.corpus import Corpus
from securetm.credentials.roster import COORDINATOR
from securetm.data_classes import dataclass
from securetm.errors import Failed
from securetm.federation.folder import LOG, begin, reopen
from securetm.federation.party.joining import documents_of
from securetm.federation.release import MODEL
from securetm.federation.simulation.simulation import execute
from securetm.federation.transcript import Transcript
from securetm.plans.agreement import agree
from securetm.plans.party_file import PartyFile
from securetm.plans.recommend import whole_plan
from securetm.private_files import private_folder, writing
from securetm.stages import Stages
from securetm.trial.files import HOME, TrialFolder

# ---- the processes: each is a command of its own with its own log, and ends when the block is left ------------------

_GRACE = 10.0  # seconds in which a process that is asked to end may write its files
_SHOWN = 400  # characters of a log, its last ones
_COMMAND = (sys.executable, "-m", "securetm.cli.main")


@dataclass
class MemberProcess:
    name: str
    log: Path
    running: subprocess.Popen[bytes]

    @property
    def code(self) -> int | None:
        return self.running.poll()

    @property
    def number(self) -> int:
        return self.running.pid


class MemberProcesses:
    """Starts the commands, and ends what still runs when the block is left."""

    def __init__(self, logs: Path, threads: int = 1) -> None:
        self.members: list[MemberProcess] = []
        self._logs, self._threads = logs, {"OMP_NUM_THREADS": str(threads), "COLUMNS": "100"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        left = [one.running for one in self.members if one.code is None]
        for one in left:
            one.terminate()
        for one in left:
            try:
                one.wait(_GRACE)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()

    def start(self, name: str, command: Sequence[str]) -> None:
        """Starts `securetm` with these arguments. Ctrl-C at the terminal reaches this process alone, which ends the others."""
        path = self._logs / f"{name}.log"
        with writing(path) as log:
            # This copy of the package comes first on the path, wherever the process starts.
            found = [
                str(Path(__file__).resolve().parents[2]),
                *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
            ]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(found)), **self._threads}
            running = subprocess.Popen(  # noqa: S603 - our own command, with no shell
                [*_COMMAND, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        self.members.append(MemberProcess(name, path, running))

    def all_ended(self) -> bool:
        """Whether every process has ended well. One that ended otherwise is an error at once."""
        for one in self.members:
            if one.code:
                said = one.log.read_text("utf-8", "replace").strip()[-_SHOWN:]
                raise Failed(
                    "the process of {name} ended with exit code {code}; its last words were: {said}",
                    hint="all of it is in {path}; the other processes were ended",
                    name=one.name,
                    code=one.code,
                    said=said,
                    path=str(one.log),
                )
        return all(one.code == 0 for one in self.members)


# ---- both runs, and what is compared --------------------------------------------------------------------------------


SIMULATION, LOGS = "simulation", "logs"
_LOOK = 0.25  # seconds between two looks at the processes
_SENT = "SELECT sender, SUM(bytes), COUNT(*) FROM messages WHERE sender != receiver AND sender != ? GROUP BY sender"

Event = Mapping[str, Any]
Show = Callable[[Sequence[MemberProcess], Sequence[Event]], None]


@dataclass(frozen=True)
class Sent:
    """What left one party in the run of six processes."""

    party: str
    documents: int
    words: int
    bytes: int
    messages: int


@dataclass(frozen=True)
class Simulated:
    """The run in this process."""

    result: Mapping[str, Any]
    corpora: Mapping[str, Corpus]


@dataclass(frozen=True)
class TrialEnded:
    """Both runs of a trial, after their models were compared."""

    trial: TrialFolder
    profile: Profile
    result: Mapping[str, Any]  # of the simulation
    sent: tuple[Sent, ...]
    model: str  # SHA-256 of every copy
    copies: int  # at the members
    seconds: float  # of the six processes, from the first start to the last end


def run_simulation(trial: TrialFolder, stages: Stages) -> Simulated:
    """Runs it in this process. It comes first, because it compiles what all processes use."""
    plan, corpora = whole_plan(trial.plan, {}), {}
    for name in trial.parties:
        file = PartyFile.read(trial.file(name))
        corpora[name] = documents_of(file, agree(whole_plan(file.place(file.plan), {})), stages)
    return Simulated(execute(begin(trial.path / SIMULATION, plan, corpora), stages), corpora)


def run_processes(trial: TrialFolder, show: Show) -> float:
    """Starts the coordinator and all parties, and returns how long they took when all of them have ended well."""
    logs, begun = trial.path / LOGS, time.monotonic()
    private_folder(logs)
    with MemberProcesses(logs) as processes:
        for name, command in zip((COORDINATOR, *trial.parties), trial.commands, strict=True):
            processes.start(name, command)
        while not processes.all_ended():
            show(processes.members, events_of(trial))
            time.sleep(_LOOK)
    return time.monotonic() - begun


def events_of(trial: TrialFolder) -> list[Event]:
    """The coordinator's log so far. The last line may be half written."""
    path = trial.run / LOG
    if not path.is_file():
        return []
    *whole, _ = path.read_text("utf-8").split("\n")
    return [json.loads(line) for line in whole]


def same_models(trial: TrialFolder, simulated: Simulated, seconds: float) -> TrialEnded:
    """Compares the models byte by byte: every member must have the simulation's.

    Under a privacy budget noise is drawn anew in each run, so the members' models are compared with each other alone.
    """
    folder = reopen(trial.path / SIMULATION)
    places = {COORDINATOR: trial.run, **{name: trial.party(name) / HOME for name in trial.parties}}
    found = {name: [_digest(path) for path in place.rglob(MODEL)] for name, place in places.items()}
    if folder.agreement.profile.aggregation.opened_by == "parties":
        del found[COORDINATOR]  # it never sees a model
    noised = folder.agreement.budget is not None
    wanted = next(iter(found.values()), [""])[:1] if noised else [_digest(folder.model)]
    for name, digests in found.items():
        if set(digests) != set(wanted):
            raise Failed(
                "the model of {name} is not that of the others",
                hint="this is a fault of securetm: please report it, with the folder {path}",
                name=name,
                path=str(trial.path),
            )
    copies = sum(map(len, found.values()))
    sent = _sent(trial, simulated.corpora)
    return TrialEnded(trial, folder.agreement.profile, simulated.result, sent, wanted[0], copies, seconds)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sent(trial: TrialFolder, corpora: Mapping[str, Corpus]) -> tuple[Sent, ...]:
    transcript = Transcript(trial.run / "transcript")
    rows = {name: (int(sent), int(count)) for name, sent, count in transcript.rows(_SENT, COORDINATOR)}
    transcript.close()
    return tuple(Sent(name, len(one), int(one.counts.sum()), *rows.get(name, (0, 0))) for name, one in corpora.items())
