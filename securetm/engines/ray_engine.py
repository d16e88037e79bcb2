"""The engine that carries out tasks on Ray: on this machine, or on a cluster of the party's own that lets nobody else in.

Actors read documents where they lie. The question with its state is sent once a round, results are added as they arrive, and
the tasks of a lost actor are carried out by another. Everything that Ray sees is inside the party.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from securetm.contracts import Engine
from securetm.engines.carrying import packed, unpacked
from securetm.engines.dispatch import Event, carried_out
from securetm.engines.listening import is_loopback
from securetm.engines.ray_driver import RayDriver
from securetm.engines.ray_errors import BadRayAddress, ClusterWithoutTls, ClusterWithoutToken, NoRay, RayDidNotStart
from securetm.engines.ray_links import DriverRefused, GiveTask, NextWork, StartWorker, TaskDone, WorkerBegun, WorkerLost
from securetm.settings import require

T = TypeVar("T")
R = TypeVar("R")
WHERE = "[engine]"
MOST_WORKERS = 4096
_TLS_FILES = ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")


@dataclass(eq=False)
class RayEngine(Engine):
    """Actors of Ray, one task each at a time. Ray starts with the first task."""

    workers: int = 0  # 0: one for each processor of this machine
    address: str = ""  # "host:port" of a cluster that is there; empty: one is started on this machine, for this party alone
    _crew: RayCrew | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuses settings that cannot be, and a cluster that would let others in."""
        require(0 <= self.workers <= MOST_WORKERS, WHERE, "workers", self.workers, f"must be from 0 to {MOST_WORKERS}")
        require(not self.address or self.workers > 0, WHERE, "workers", self.workers, "must be at least 1 beside an address")
        self.workers = self.workers or os.cpu_count() or 1
        if find_spec("ray") is None:
            raise NoRay()
        if self.address:
            check_address(self.address, os.environ)

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """The results as they arrive; one call at a time."""
        crew = self._crew = self._crew or RayCrew(self.workers, self.address)
        try:
            crew.begin(packed("the question", work))
            yield from carried_out(crew, self.workers, tasks)
        finally:
            crew.begin(b"")  # what actors still do for a call that was given up is of no use to the next

    def close(self) -> None:
        """Ends Ray."""
        if self._crew is not None:
            self._crew.end()
        self._crew = None


def check_address(address: str, environment: Mapping[str, str]) -> None:
    """Refuses a cluster that is not closed to others by a token and, beyond this machine, TLS."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise BadRayAddress(address)
    home = Path(environment.get("HOME") or Path.home()) / ".ray" / "auth_token"
    token = environment.get("RAY_AUTH_TOKEN") or Path(environment.get("RAY_AUTH_TOKEN_PATH") or home).is_file()
    if environment.get("RAY_AUTH_MODE") != "token" or not token:
        raise ClusterWithoutToken(address)
    if is_loopback(host):
        return  # whether all of the cluster is on this machine is looked at once it is joined
    if environment.get("RAY_USE_TLS", "").lower() not in ("1", "true"):
        raise ClusterWithoutTls(address, "RAY_USE_TLS is not 1")
    for name in _TLS_FILES:
        if not Path(environment.get(name, "")).is_file():
            raise ClusterWithoutTls(address, f"{name} names no file")


class RayCrew:
    """The workers of one driver (dispatch.Crew). If the driver is lost, so are all of them, and another one is started."""

    def __init__(self, workers: int, address: str) -> None:
        self.workers, self.address = workers, address
        self._driver: RayDriver | None = None
        self._busy: dict[str, int] = {}  # the ticket of each worker's task; 0: it has none
        self._places: dict[str, int] = {}
        self._tickets, self._first, self._names = 0, 0, 0
        self._work, self._told = b"", False

    @property
    def driver(self) -> RayDriver:
        """The driver that runs."""
        if self._driver is None:
            self._driver = RayDriver(self.workers, self.address)
            self._told = False
        return self._driver

    def begin(self, work: bytes) -> None:
        """What all tasks of the next call share. What is still done for an earlier one is not reported."""
        self._work, self._first, self._told = work, self._tickets + 1, False

    def free(self, wanted: int) -> Sequence[str]:
        """Workers that run and have no task. Missing ones are started, and are there once the cluster has room for them."""
        for place in sorted(set(range(self.workers)) - set(self._places.values())):
            self._names += 1
            name = f"worker {self._names}"
            self._places[name] = place
            self.driver.link.say(StartWorker(name))
        return sorted((name for name, ticket in self._busy.items() if not ticket), key=self.place)[:wanted]

    def place(self, worker: str) -> int:
        """The worker's place, which was that of the lost one that it replaces."""
        return self._places[worker]

    def give(self, worker: str, task: Any) -> None:
        """Sends the task, and before the first one of a call what they share."""
        if not self._told:
            self.driver.link.say(NextWork(), self._work)
        self._told = True
        self._tickets += 1
        self._busy[worker] = self._tickets
        self.driver.link.say(GiveTask(worker, self._tickets), packed("a task", task))

    def events(self) -> Sequence[Event]:
        """What happened since; waits for the first thing."""
        found = self._heard(*self.driver.link.hear())
        while self._driver is not None and self._driver.link.more():
            found += self._heard(*self._driver.link.hear())
        return found

    def _heard(self, message: object | None, content: bytes) -> list[Event]:
        match message:
            case WorkerBegun(worker):
                self._busy[worker] = 0
                return []
            case TaskDone(worker, ticket):
                self._busy[worker] = 0
                return [Event(worker, unpacked(content))] if ticket >= self._first else []
            case WorkerLost(worker, how):
                ticket = self._busy.pop(worker, 0)
                self._places.pop(worker, None)
                return [Event(worker, lost=how)] if ticket >= self._first else []
            case DriverRefused(problem):
                self.end()
                raise problem
        return self._without_driver()

    def _without_driver(self) -> list[Event]:
        """The driver is gone, and its workers with it."""
        said, lost = self.driver.last_words(), self._busy
        self.end()
        if all(ticket < self._first for ticket in lost.values()):  # none had a task yet
            raise RayDidNotStart(said)
        return [Event(name, lost=f"ended with Ray: {said}") for name, ticket in lost.items() if ticket >= self._first]

    def end(self) -> None:
        """Ends Ray with all of its processes."""
        driver, self._driver, self._busy, self._places = self._driver, None, {}, {}
        if driver is not None:
            driver.end()
