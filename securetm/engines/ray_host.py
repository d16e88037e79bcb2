"""The process of a party's Ray driver. It starts or joins a cluster and hands tasks to actors, as the party says by a pipe.

It is a process of its own because Ray reads its settings from the environment, once in a process, and because it ends with its
party however that ends, and deletes Ray's files: the pipe closes, which a thread of its own hears, whatever Ray is busy with.
Where the system has no /proc, Ray's other processes are not found, and end by themselves once they miss this one.
It is started by its own command line: python -m securetm.engines.ray_host PIPE
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ray

from securetm.engines.listening import family, heard_elsewhere, is_loopback, named
from securetm.engines.ray_errors import ClusterElsewhere, ClusterTooSmall, RayDidNotStart, RayListens
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
from securetm.engines.ray_probe import check_closed
from securetm.engines.ray_worker import ShardHolder, check_versions
from securetm.errors import SecuretmError

SESSION = "s"  # the folder of Ray's own files: short, because it is part of the paths of sockets
_NEEDED = ("gcs_server", "raylet")  # programs of Ray without which no actor can be started
_DYING = 10  # seconds that a killed process may take
_ENDING = 20  # seconds in which Ray ends, or is killed
_settled = threading.Event()  # Ray runs or is joined, or will not be
_ending = threading.Event()  # it is no fault that Ray's processes end
_ended = threading.Event()
Said = tuple[object | None, bytes]  # what RayLink hears


def main() -> None:
    """Serves the party at the other end of the pipe until that closes. Then nothing is left of Ray, and of its files."""
    link, inbox = RayLink(Connection(int(sys.argv[1]))), SimpleQueue[Said]()
    settings, _ = link.hear()
    if not isinstance(settings, RaySettings):
        return
    threading.Thread(target=_listen, args=(link, inbox, settings.folder), daemon=True).start()
    problem = _problem_with(settings)
    _settled.set()
    if problem is not None:
        link.say(DriverRefused(problem))
        while inbox.get()[0] is not None:
            pass  # the party ends this process, which never served
    else:
        RayHost(link, settings).serve(inbox)
    _shut_down()
    shutil.rmtree(settings.folder, ignore_errors=True)
    _ended.set()


def _listen(link: RayLink, inbox: SimpleQueue[Said], folder: str) -> None:
    """Hears the party. When that has ended, so does this process, at once if Ray has not begun, and else in seconds."""
    said = link.hear()
    while said[0] is not None:
        inbox.put(said)
        said = link.hear()
    inbox.put(said)
    if _settled.is_set() and _ended.wait(_ENDING):
        return
    _ending.set()
    while left := family(os.getpid())[1:]:
        _kill([one for one in map(handle, left) if one])
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _problem_with(settings: RaySettings) -> SecuretmError | None:
    """Starts or joins Ray, or says why not."""
    try:
        _begin(settings)
    except SecuretmError as problem:
        return problem
    except Exception as problem:  # noqa: BLE001 - whatever Ray raises: its last words are for the operator
        return RayDidNotStart(_first_line(problem))
    return None


def _begin(settings: RaySettings) -> None:
    quiet: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
    if not settings.address:
        session = str(Path(settings.folder) / SESSION)
        ray.init("local", num_cpus=settings.workers, include_dashboard=False, _temp_dir=session, **quiet)
        _end_with(named(os.getpid(), _NEEDED))
        return
    check_closed(settings.address, os.environ)
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
    left = [one for one in map(handle, family(os.getpid())[1:]) if one]
    _ending.set()
    ray.shutdown()
    _kill(left)


def _kill(handles: Sequence[int]) -> None:
    for one in handles:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(one, signal.SIGKILL)
        select.select([one], (), (), _DYING)
        os.close(one)


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


class RayHost:
    """Actors by name, and what the party says about them."""

    def __init__(self, link: RayLink, settings: RaySettings) -> None:
        self.link, self.settings = link, settings
        self._actors: dict[str, Any] = {}
        self._work: Any = None  # in Ray's store, once for all actors
        self._number = 0
        self._holding: dict[str, int] = {}
        self._made = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD")(ShardHolder)

    def serve(self, inbox: SimpleQueue[Said]) -> None:
        """Carries out what the party says until the pipe closes."""
        while True:
            message, content = inbox.get()
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
