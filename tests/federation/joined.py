"""Parties that join out of their own files, and a coordinator that meets them in memory. It holds no tests."""

from __future__ import annotations

import json
import shutil
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from securetm.credentials.roster import read_roster
from securetm.entropy import OperatingSystem
from securetm.federation.coordinator.coordinator import Coordinator, Trained
from securetm.federation.coordinator.rounds import Attendance
from securetm.federation.party.joining import Joining, Tell, join, prepare
from securetm.federation.party.status import JoinStatus
from securetm.federation.soundness import agreed_apart
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.plans.agreement import agree
from securetm.plans.origins import accepted_as
from securetm.plans.recommend import plan_from_tables, whole_plan
from securetm.stages import Unwatched

from .conftest import FIVE, texts

PARTY = """
name = "{name}"
home = "home"
{top}
[data]
source = "documents.jsonl"
identity = "{identity}"
{data}
[policy]
{policy}
[privacy]
{privacy}
"""
PLAN = """
profile = "masked"
[model]
name = "lda"
n_topics = 3
[vocabulary]
min_documents = 2
max_share = 1.0
most_candidates = 500
[training]
rounds = 2
held_out = 0.2
"""
WAIT = 60.0  # seconds that a test waits for what happens in milliseconds
NAMES = ("numpy", "scikit-learn", "scipy", "standard-library", "torch")  # of a trial, in the order of the roster


@dataclass
class Organisations:
    """Five organisations with a folder each, and a plan that each has a copy of."""

    folder: Path
    plan: str

    @classmethod
    def of(cls, keys: Path, folder: Path, plan: str, documents: int = 40) -> Organisations:
        """The organisations of these keys, with documents and a plan of their own."""
        shutil.copytree(keys, folder)
        made = cls(folder, plan)
        for seed, (name, subject) in enumerate(zip(NAMES, FIVE, strict=True)):
            made.write(name)
            made.bring(name, texts(FIVE[subject], documents, seed))
            (made.home(name).parent / "plan.toml").write_text(plan, "utf-8")
        return made

    def home(self, name: str) -> Path:
        return self.folder / "parties" / name / "home"

    def file(self, name: str) -> Path:
        return self.folder / "parties" / name / "PARTY.toml"

    def write(self, name: str, **changed: str) -> Path:
        """Writes PARTY.toml anew. It accepts what the plan declares public."""
        usual = {"identity": "notes", "data": "", "policy": "", "privacy": "", "top": "", **changed}
        if "inputs" not in usual["policy"]:
            usual["policy"] = f"inputs = {json.dumps(accepted(self.plan))}\n{usual['policy']}"
        self.file(name).write_text(PARTY.format(name=name, **usual), "utf-8")
        return self.file(name)

    def bring(self, name: str, documents: list[str], file: str = "documents.jsonl") -> None:
        lines = (json.dumps({"text": text}) for text in documents)
        (self.file(name).parent / file).write_text("\n".join(lines), "utf-8")

    def prepared(self, name: str, tell: Tell = lambda *_: None, *, connects: bool = True) -> Joining:
        return prepare(self.file(name), lambda _: None, Unwatched(), tell, connects=connects)


def accepted(plan: str) -> list[str]:
    """The digests by which a party accepts the inputs of this plan that rest on somebody's word."""
    tables = tomllib.loads(plan)
    if "origins" not in tables:
        return []
    return [accepted_as(one) for one in agree(plan_from_tables(tables, "a test")).inputs if one.digest]


@dataclass
class Door:
    """Where parties come in and are asked, one at a time. It is a carrier for each, and all parties for a coordinator."""

    handles: dict[str, Callable[[bytes], bytes]] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)
    came: threading.Condition = field(default_factory=threading.Condition)

    def carrier(self, name: str) -> _Carrier:
        return _Carrier(self, name)

    def wait(self, names: tuple[str, ...]) -> None:
        with self.came:
            assert self.came.wait_for(lambda: set(names) <= set(self.handles), WAIT), sorted(self.handles)

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        for name, request in requests.items():
            if name in self.handles:
                yield name, self.handles[name](request)

    def present(self) -> frozenset[str]:
        return frozenset(self.handles)

    def close(self) -> None:
        self.ended.set()


@dataclass
class _Carrier:
    door: Door
    name: str

    def run(self, handle: Callable[[bytes], bytes], stop: threading.Event) -> bool:
        with self.door.came:
            self.door.handles[self.name] = handle
            self.door.came.notify_all()
        while not stop.is_set() and not self.door.ended.wait(0.01):
            pass
        with self.door.came:
            del self.door.handles[self.name]
        return self.door.ended.is_set()


@dataclass
class Joined:
    """Parties that are joined, each in a thread of its own."""

    door: Door = field(default_factory=Door)
    stop: threading.Event = field(default_factory=threading.Event)
    reports: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    problems: dict[str, BaseException] = field(default_factory=dict)
    told: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def comes(self, joining: Joining) -> None:
        name = joining.file.name
        status = JoinStatus(name, "trial", 2, lambda event, facts: self.told.append((name, event, facts)))

        def work() -> None:
            try:
                self.reports[name] = join(joining, lambda _: self.door.carrier(name), status, self.stop)
            except BaseException as problem:  # noqa: BLE001 - looked at by the test
                self.problems[name] = problem

        self._threads.append(threading.Thread(target=work))
        self._threads[-1].start()

    def end(self) -> None:
        for thread in self._threads:
            thread.join(WAIT)
            assert not thread.is_alive()


def coordinator_of(organisations: Organisations, door: Door, folder: Path) -> Coordinator:
    """The coordinator of their plan, over a store in that folder."""
    plan = organisations.folder / "coordinator" / "plan.toml"
    plan.write_text(organisations.plan, "utf-8")
    roster = read_roster(organisations.folder / "coordinator" / "roster.toml")
    agreement, store = agreed_apart(whole_plan(plan, {}), roster.members), CoordinatorStore(folder)
    return Coordinator(roster.members, agreement, door, store, OperatingSystem(), Watch(), roster.keys, Attendance(True))


def trained(
    organisations: Organisations, folder: Path, joinings: Mapping[str, Joining] | None = None
) -> tuple[Trained, Joined]:
    """Everybody joins, the coordinator trains, and the parties end."""
    joined = Joined()
    for name in NAMES:
        joined.comes((joinings or {}).get(name) or organisations.prepared(name))
    try:
        joined.door.wait(NAMES)
        coordinator = coordinator_of(organisations, joined.door, folder)
        try:
            result = coordinator.run()
            joined.door.ended.set()
        finally:
            coordinator.store.close()
    finally:
        joined.stop.set()
        joined.end()
    return result, joined
