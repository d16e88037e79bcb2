"""A federation in this process under faults: roles are killed, messages lost and parties frozen. It tests nothing itself.

The roles are the real ones. What a killed role had only in memory is gone; it is made again from its own files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from securetm.aggregation.masked.masked_sum import MaskedSum
from securetm.entropy import OperatingSystem
from securetm.errors import TooFewParties
from securetm.federation.coordinator.coordinator import Coordinator, Trained
from securetm.federation.coordinator.rounds import Attendance, NewSessionWanted, PartiesMissing
from securetm.federation.folder import RunFolder
from securetm.federation.party.party import Party
from securetm.federation.simulation.simulation import make_party
from securetm.federation.store import CoordinatorStore
from securetm.federation.transcript import Watch
from securetm.sessions.survivors import SurvivorsMissing

from .struck import CARRIER, COORDINATOR, Killed, Trap
from .watching import Monitor

LONGEST = 30_000  # calls: about as many as the largest message takes


class Kind(Enum):
    """What happens at a message to a party."""

    REQUEST_LOST = "the request is lost"
    REPLY_LOST = "the reply is lost"
    KILLED = "the party is killed while it answers"
    KILLED_AFTER = "the party is killed when its reply has left"
    FROZEN = "the party answers after the deadline"
    AWAY = "the party is away for a while"
    RESTARTED = "the coordinator is killed"
    BOTH = "the coordinator and the party are killed"


@dataclass
class Schedule:
    """So many random faults, at messages that a seed chooses. The same seed gives the same faults."""

    seed: int
    faults: int
    apart: int  # messages between two faults, at most
    kinds: tuple[Kind, ...] = tuple(Kind)
    struck: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._left = self._gap()

    def due(self, name: str, stage: str) -> Kind | None:
        """Returns the fault of the message of that kind that is carried to this party now."""
        kind = self._drawn()
        if kind is not None:
            self.struck.append(f"{kind.name} {name} {stage}")
        return kind

    def _drawn(self) -> Kind | None:
        self._left -= 1
        if self._left > 0 or len(self.struck) >= self.faults:
            return None
        self._left = self._gap()
        return self.kinds[int(self._rng.integers(len(self.kinds)))]

    def calls(self) -> int:
        """Returns after how many calls a role is killed: as often among the first ten as among the last thousands."""
        return int(np.exp(self._rng.uniform(0, np.log(LONGEST))))

    def short(self) -> int:
        """Returns a small number of messages."""
        return int(self._rng.integers(2, 6))

    def _gap(self) -> int:
        return int(self._rng.integers(1, self.apart + 1))


class Script(Schedule):
    """Faults at chosen messages: the kind of fault by party and kind of message, each once."""

    def __init__(self, at: Mapping[tuple[str, str], Kind]) -> None:
        super().__init__(0, 0, 1)
        self.at = dict(at)

    def due(self, name: str, stage: str) -> Kind | None:
        """Returns the fault of this message."""
        return self.at.pop((name, stage), None)


@dataclass
class Faulty:
    """The parties as a coordinator reaches them through a bad network."""

    make: Callable[[str], Party]
    members: tuple[str, ...]
    schedule: Schedule
    trap: Trap
    monitor: Monitor
    up: dict[str, Party] = field(default_factory=dict)
    late: dict[str, list[bytes]] = field(default_factory=dict)  # requests that a frozen party has not seen yet
    away: dict[str, int] = field(default_factory=dict)  # how many more messages a party misses

    def ask(self, requests: Mapping[str, bytes], most: int) -> Iterator[tuple[str, bytes]]:
        """Carries requests and replies, or loses them."""
        del most
        if self.trap.victim == COORDINATOR and self.trap.where:  # a library made another error of its end
            raise Killed(self.trap.where)
        for name in self.members:
            if name in requests:
                with self.trap.role(CARRIER):
                    reply = self._carried(name, requests[name])
                if reply is not None:
                    yield name, reply

    def present(self) -> frozenset[str]:
        """Returns the parties that are not away. One that was killed is up again when it is asked next."""
        return frozenset(name for name in self.members if not self.away.get(name, 0))

    def close(self) -> None:
        """Closes the stores of the parties that are up."""
        for party in self.up.values():
            party.close()
        self.up = {}

    def _carried(self, name: str, request: bytes) -> bytes | None:
        kind = self.schedule.due(name, self.monitor.stage(request))
        if self.away.get(name, 0):
            self.away[name] -= 1
            return None
        reply = self._befalls[kind](name, request) if kind in self._befalls else self._handled(name, request)
        if kind in (Kind.RESTARTED, Kind.BOTH):
            self.trap.arm(COORDINATOR, self.schedule.calls())
        return reply

    @property
    def _befalls(self) -> Mapping[Kind | None, Callable[[str, bytes], bytes | None]]:
        """What becomes of a message under each fault, and the reply to it."""
        return {
            Kind.REQUEST_LOST: lambda name, request: None,
            Kind.REPLY_LOST: lambda name, request: self._handled(name, request) and None,
            Kind.AWAY: lambda name, request: self.away.update({name: self.schedule.short()}),
            Kind.FROZEN: lambda name, request: self.late.setdefault(name, []).append(request),
            Kind.KILLED: self._killed,
            Kind.KILLED_AFTER: self._killed_after,
            Kind.BOTH: self._killed,
        }

    def _killed_after(self, name: str, request: bytes) -> bytes:
        reply = self._handled(name, request)
        self._drop(name)
        return reply

    def _killed(self, name: str, request: bytes) -> None:
        """The party is killed somewhere in its answer; if it needs fewer calls than that, before its reply leaves."""
        self.trap.arm(name, self.schedule.calls())
        with suppress(Killed):
            self._handled(name, request)
        where = self.trap.where
        self.trap.disarm()
        self.schedule.struck[-1] += f" at {where or 'its end'}"
        self.monitor.killed(name, request)
        self._drop(name)

    def _handled(self, name: str, request: bytes) -> bytes:
        for one in self.late.pop(name, []):
            self._answered(name, one)
        return self._answered(name, request)

    def _answered(self, name: str, request: bytes) -> bytes:
        with self.trap.role(name):
            if name not in self.up:
                self.up[name] = self.make(name)
            self.monitor.request(name, request)
            reply = self.up[name].handle(request)
        self.monitor.reply(name, request, reply)
        return reply

    def _drop(self, name: str) -> None:
        """Forgets what the party had in memory, and writes nothing more."""
        self.late.pop(name, None)
        party = self.up.pop(name, None)
        if party is not None:
            for store in (party.store, party.others):
                if store is not None:
                    abandon(store._open)
            if party.ledger is not None:
                abandon(party.ledger._file._opened)


def abandon(opened: sqlite3.Connection) -> None:
    """Closes a file as the end of a process does: what was not committed is undone."""
    opened.close()


@dataclass
class Machine:
    """One run under a schedule of faults, until it ends."""

    folder: RunFolder
    schedule: Schedule
    attendance: Attendance = field(default_factory=lambda: Attendance(everyone=True))
    make: Callable[[RunFolder, str], Party] = make_party
    trap: Trap = field(default_factory=Trap)
    monitor: Monitor = field(default_factory=Monitor)
    starts: int = 0

    def __post_init__(self) -> None:
        self.monitor.hidden = isinstance(self.folder.agreement.profile.aggregation, MaskedSum)

    def train(self, most_starts: int) -> Trained:
        """Starts the coordinator again and again, until the run ends."""
        parties = Faulty(self._made, self.folder.members, self.schedule, self.trap, self.monitor)
        try:
            while True:
                self.starts += 1
                assert self.starts <= most_starts, f"the run does not end: {self.schedule.struck[-5:]}"
                trained = self._started(parties)
                if trained is not None:
                    return trained
        finally:
            self.trap.disarm()
            parties.close()

    def _made(self, name: str) -> Party:
        party = self.make(self.folder, name)
        self.monitor.made(party)
        return party

    def _started(self, parties: Faulty) -> Trained | None:
        folder, store = self.folder, None
        with suppress(Killed, PartiesMissing, TooFewParties, SurvivorsMissing, NewSessionWanted), self.trap.role(COORDINATOR):
            store = CoordinatorStore(folder.coordinator)
            trained = Coordinator(
                folder.members, folder.agreement, parties, store, OperatingSystem(), Watch(), folder.keys, self.attendance
            ).run()
            if not self.trap.where:
                return trained
        if self.trap.disarm():
            self.schedule.struck.append("coordinator killed")
        if store is not None:
            abandon(store._open)
        return None


def same(one: Trained, other: Trained) -> None:
    """Both models are the same, bit for bit."""
    assert one.vocabulary == other.vocabulary
    assert one.rounds == other.rounds
    assert set(one.state) == set(other.state)
    for name, array in one.state.items():
        np.testing.assert_array_equal(array, other.state[name], err_msg=name)


def undisturbed(folder: RunFolder, **more: Any) -> Trained:
    """The same run without a fault."""
    return Machine(folder, Schedule(0, 0, 1), **more).train(1)
