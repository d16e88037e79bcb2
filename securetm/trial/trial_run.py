"""Runs a trial twice, as a simulation in this process and as six processes over TLS. The models must be the same, bit for bit.

What is shown of it is in `trial_screen.py`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securetm.contracts import Profile
from securetm.corpus.corpus import Corpus
from securetm.credentials.member_names import COORDINATOR
from securetm.federation.coordinator.serving import LOG
from securetm.federation.folder import begin, reopen
from securetm.federation.party.joining import documents_of
from securetm.federation.release import MODEL
from securetm.federation.simulation.simulation import execute
from securetm.federation.transcript import Transcript
from securetm.plans.agreement import agree
from securetm.plans.party_file import PartyFile
from securetm.plans.recommend import read_plan
from securetm.private_files import private_folder
from securetm.stages import Stages
from securetm.trial.member_processes import MemberProcess, MemberProcesses
from securetm.trial.trial_errors import ModelsDiffer
from securetm.trial.trial_folder import HOME, TrialFolder

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
    plan, corpora = read_plan(trial.plan, {}), {}
    for name in trial.parties:
        file = PartyFile.read(trial.file(name))
        corpora[name] = documents_of(file, agree(read_plan(file.place(file.plan), {})), stages)
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
            raise ModelsDiffer(name, str(trial.path))
    copies = sum(map(len, found.values()))
    sent = _sent(trial, simulated.corpora)
    return TrialEnded(trial, folder.agreement.profile, simulated.result, sent, wanted[0], copies, seconds)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sent(trial: TrialFolder, corpora: Mapping[str, Corpus]) -> tuple[Sent, ...]:
    """What passed on the wire, by the coordinator's transcript."""
    transcript = Transcript(trial.run / "transcript")
    rows = {name: (int(sent), int(count)) for name, sent, count in transcript.rows(_SENT, COORDINATOR)}
    transcript.close()
    return tuple(Sent(name, len(one), int(one.counts.sum()), *rows.get(name, (0, 0))) for name, one in corpora.items())
