"""Four parties over the network, each with another engine, learn the model of one process, bit for bit, also after a kill."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from securetm.corpus.corpus_build import CorpusBuild
from securetm.corpus.records import Columns
from securetm.credentials.roster import write_roster
from securetm.engines.listening import family
from securetm.engines.ray_host import handle
from securetm.federation.release import MODEL
from securetm.private_files import private_folder
from securetm.stages import Unwatched
from securetm.trial import files as trial_files
from securetm.trial.files import TrialFolder, free_port
from securetm.trial.processes import MemberProcess, MemberProcesses, events_of, run_processes, run_simulation, same_models

from ..federation.conftest import FIVE, texts
from .small_plan import plan

pytestmark = pytest.mark.slow
PATIENCE = 300.0  # seconds, far more than is needed
ENGINES = {
    "north": '[engine]\nkind = "ray"\nworkers = 2',
    "east": '[engine]\nkind = "pool"\nworkers = 2',
    "south": "",  # in its own process, documents on disk
    "west": None,  # in its own process, documents in memory
}
COORDINATOR = """
[coordinator]
listen = "127.0.0.1:{port}"
roster = "roster.toml"
keys = "home/keys"
out = "run"
"""
PARTY = """
name = "{name}"
home = "home"
roster = "roster.toml"
plan = "plan.toml"
[data]
source = "{source}"
identity = "notes"
{engine}
"""


def made(folder: Path, rounds: int) -> TrialFolder:
    """The files of four parties. Three of them have their documents on disk, in blocks of eight."""
    trial, port = TrialFolder(folder, tuple(sorted(ENGINES))), free_port()
    private_folder(folder)
    roster = trial_files._enrolled(trial, f"127.0.0.1:{port}", Unwatched())
    for here in (trial.coordinator, *map(trial.party, trial.parties)):
        (here / "plan.toml").write_text(plan(rounds, seed=3) + COORDINATOR.format(port=port), "utf-8")
        write_roster(here / "roster.toml", roster)
    for seed, (name, subject) in enumerate(zip(trial.parties, FIVE, strict=False)):
        place, engine = trial.party(name), ENGINES[name]
        (place / "documents.jsonl").write_text(
            "".join(json.dumps({"text": text}) + "\n" for text in texts(FIVE[subject], 60, seed)), "utf-8"
        )
        if engine is not None:
            CorpusBuild(str(place / "documents.jsonl"), place / "stored", Columns(), block_documents=8, shards=2).run()
        source = "documents.jsonl" if engine is None else "stored"
        trial.file(name).write_text(PARTY.format(name=name, source=source, engine=engine or ""), "utf-8")
    return trial


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def rounds_of(trial: TrialFolder) -> int:
    return sum(event["event"] == "round" for event in events_of(trial))


def test_the_model_is_that_of_one_process(tmp_path: Path) -> None:
    trial = made(tmp_path / "trial", rounds=4)
    simulated = run_simulation(trial, Unwatched())
    processes: dict[str, int] = {}

    def show(members: Sequence[MemberProcess], events: Sequence[Any]) -> None:
        for one in members:
            processes[one.name] = max(processes.get(one.name, 0), len(family(one.number)))

    ended = same_models(trial, simulated, run_processes(trial, show))
    assert ended.copies == 5
    assert processes["north"] > 8  # Ray's
    assert processes["east"] == 3
    assert processes["south"] == processes["west"] == 1


def test_a_party_on_ray_that_is_killed_comes_back_and_leaves_no_process(tmp_path: Path) -> None:
    trial = made(tmp_path / "trial", rounds=8)
    simulated = run_simulation(trial, Unwatched())
    logs = tmp_path / "logs"
    private_folder(logs)
    commands = dict(zip(("coordinator", *trial.parties), trial.commands, strict=True))
    with MemberProcesses(logs) as processes:
        for name, command in commands.items():
            processes.start(name, command)
        north = next(one for one in processes.members if one.name == "north")
        until(lambda: processes.all_ended() or rounds_of(trial) >= 2)
        ours = [handle(process) for process in family(north.number)]
        assert len(ours) > 8  # Ray's
        os.kill(north.number, 9)
        north.running.wait(PATIENCE)
        processes.members.remove(north)
        assert [one for one in ours if one and not select.select([one], (), (), PATIENCE)[0]] == []
        assert rounds_of(trial) < 8
        (logs / "north.log").rename(logs / "north-before.log")
        processes.start("north", commands["north"])
        until(processes.all_ended)
    assert same_models(trial, simulated, 0.0).copies == 5
    assert len(list(trial.path.rglob(MODEL))) >= 6
