"""The process of a party's Ray driver. It starts or joins a cluster and hands tasks to actors, as the party says by a pipe.

It is a process of its own because Ray reads its settings from the environment, once in a process, and because it ends with its
party however that ends: the pipe closes. It is started by its own command line: python -m securetm.engines.ray_host PIPE
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import ray

from securetm.engines.listening import family, heard_elsewhere, is_loopback, named
from securetm.engines.ray_errors import ClusterElsewhere, ClusterLetsAnyoneIn, ClusterTooSmall, RayDidNotStart, RayListens
from securetm.engines.ray_links import (
    DriverRefused,
    GiveTask,
    NextWork,
    RayLink,
    RaySettings,
    StartWorker,
    TaskDone,
    WorkerBegun,
    WorkerLost,
)
from securetm.engines.ray_worker import ShardHolder, check_versions
from securetm.errors import SecuretmError

SESSION = "s"  # the folder of Ray's own files: short, because it is part of the paths of sockets
_NEEDED = ("gcs_server", "raylet")  # programs of Ray without which no actor can be started
_DYING = 10  # seconds that a killed process may take
_ANSWERED = 10  # seconds in which the machine of a cluster answers
_PROBED = 60  # seconds in which a cluster answers, or does not
_ending = threading.Event()


def main() -> None:
    """Serves the party at the other end of the pipe until that closes."""
    link = RayLink(Connection(int(sys.argv[1])))
    settings, _ = link.hear()
    if isinstance(settings, RaySettings):
        try:
            _begin(settings)
        except SecuretmError as problem:
            link.say(DriverRefused(problem))
        except Exception as problem:  # noqa: BLE001 - whatever Ray raises: its last words are for the operator
            link.say(DriverRefused(RayDidNotStart(_first_line(problem))))
        else:
            RayHost(link, settings).serve()
        _shut_down()


def _begin(settings: RaySettings) -> None:
    quiet: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
    if not settings.address:
        session = str(Path(settings.folder) / SESSION)
        ray.init("local", num_cpus=settings.workers, include_dashboard=False, _temp_dir=session, **quiet)
        _end_with(named(os.getpid(), _NEEDED))
        return
    check_closed(settings.address)
    ray.init(settings.address, **quiet)
    machines = [one["NodeManagerAddress"] for one in ray.nodes()]  # type: ignore[no-untyped-call]
    others = [machine for machine in machines if not is_loopback(machine)]
    if others and not has_tls():
        raise ClusterElsewhere(settings.address, ", ".join(others))
    processors = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
    if processors < settings.workers:
        raise ClusterTooSmall(settings.address, processors, settings.workers)


def _shut_down() -> None:
    """Ends Ray. Its helpers notice that only after a while, so they are ended, too."""
    left = [handle(one) for one in family(os.getpid())[1:]]
    _ending.set()
    ray.shutdown()
    for one in filter(None, left):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(one, signal.SIGKILL)
        select.select([one], (), (), _DYING)


def _end_with(needed: Sequence[int]) -> None:
    """Ends this process with the first of these, and Ray with it: else no actor could be started, and nobody would say so."""
    handles = [one for one in map(handle, needed) if one]

    def wait() -> None:
        select.select(handles, (), ())
        if not _ending.is_set():
            os._exit(1)

    if handles:
        threading.Thread(target=wait, daemon=True).start()


def handle(process: int) -> int:
    """What stands for this process and for no later one of its number; 0 where the system has none, or it has ended."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, ProcessLookupError):
        return 0


def has_tls() -> bool:
    """Whether Ray encrypts what it sends."""
    return os.environ.get("RAY_USE_TLS", "").lower() in ("1", "true")


def check_closed(address: str) -> None:
    """Refuses a cluster that answers a program without its token, or that nobody answers for."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), _ANSWERED):
        pass
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address, "--skip-version-check"]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    try:
        found = subprocess.run(command, env=environment, capture_output=True, timeout=_PROBED, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as problem:
        raise RayDidNotStart(f"what listens at {address} is no Ray cluster") from problem
    if found.returncode == 0:
        raise ClusterLetsAnyoneIn(address)


class RayHost:
    """Actors by name, and what the party says about them."""

    def __init__(self, link: RayLink, settings: RaySettings) -> None:
        self.link, self.settings = link, settings
        self._actors: dict[str, Any] = {}
        self._work: Any = None  # in Ray's store, once for all actors
        self._number = 0
        self._holding: dict[str, int] = {}
        self._made = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD")(ShardHolder)

    def serve(self) -> None:
        """Carries out what the party says until the pipe closes."""
        while True:
            message, content = self.link.hear()
            match message:
                case None:
                    return
                case StartWorker(name):
                    self._start(name)
                case NextWork():
                    self._work, self._number = ray.put(content), self._number + 1
                case GiveTask(name, ticket):
                    self._give(name, ticket, content)

    def _start(self, name: str) -> None:
        self._actors[name] = self._made.remote()
        self._actors[name].versions.remote().future().add_done_callback(partial(self._begun, name))

    def _begun(self, name: str, found: Any) -> None:
        """Looks at a worker that has begun, before it gets a task."""
        try:
            if found.exception() is None:
                check_versions(found.result())
            if not self.settings.address and (heard := heard_elsewhere(os.getpid())):
                raise RayListens(", ".join(heard))
        except SecuretmError as problem:
            self.link.say(DriverRefused(problem))
        else:
            self.link.say(WorkerBegun(name))

    def _give(self, name: str, ticket: int, content: bytes) -> None:
        actor = self._actors[name]
        if self._holding.get(name) != self._number:
            self._holding[name] = self._number
            actor.hold.remote(self._work)  # an actor's calls come in their order
        actor.answer.remote(content).future().add_done_callback(partial(self._answered, name, ticket))

    def _answered(self, name: str, ticket: int, found: Any) -> None:
        problem = found.exception()
        if problem is None:
            self.link.say(TaskDone(name, ticket), found.result())
        else:
            self.link.say(WorkerLost(name, f"was lost by Ray ({type(problem).__name__})"))


def _first_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {(str(problem).strip().splitlines() or [''])[0]}"


if __name__ == "__main__":
    main()
