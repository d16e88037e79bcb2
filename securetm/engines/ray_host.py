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
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ray

from securetm.engines.listening import family, heard_elsewhere, is_loopback, named
from securetm.engines.ray_engine import RayLink, has_tls, not_started
from securetm.engines.ray_worker import ShardHolder, check_versions
from securetm.errors import Failed, SecuretmError

_ANSWERED = 10  # seconds in which the machine of a cluster answers
_PROBED = 60  # seconds in which a cluster answers, or does not
_REFUSED = b"AuthenticationError"  # how Ray's own program names what a cluster says to a wrong token


def check_closed(address: str, environment: Mapping[str, str]) -> None:
    """Refuses a cluster that answers a program without its token, that refuses the party's own, or that does not answer."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _ANSWERED):
            pass
    except OSError as problem:
        raise _no_answer(address, problem.strerror or str(problem)) from problem
    without = {name: value for name, value in environment.items() if not name.startswith("RAY_AUTH_")}
    if _lets_in(address, {**without, "RAY_AUTH_MODE": "disabled"}):
        raise Failed(
            "the Ray cluster at {address} answers who shows no token",
            hint="start every machine of the cluster with RAY_AUTH_MODE=token (docs/how-to/cluster.md)",
            address=address,
        )
    if not _lets_in(address, environment):
        raise Failed(
            "the Ray cluster at {address} refuses the token of this party",
            hint="give this party the token that the cluster was started with, by RAY_AUTH_TOKEN_PATH (docs/how-to/cluster.md)",
            address=address,
        )


def _lets_in(address: str, environment: Mapping[str, str]) -> bool:
    """Whether the cluster answers a program with that environment; it has to say yes or no."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address, "--skip-version-check"]
    try:
        found = subprocess.run(command, env=environment, capture_output=True, timeout=_PROBED, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as problem:
        raise _no_answer(address, f"what listens there said nothing for {_PROBED} seconds") from problem
    if found.returncode and _REFUSED not in found.stderr:
        raise _no_answer(address, "what listens there does not speak as a Ray cluster with these settings")
    return not found.returncode


SESSION = "s"  # the folder of Ray's own files: short, because it is part of the paths of sockets
_NEEDED = ("gcs_server", "raylet")  # programs of Ray without which no actor can be started
_DYING = 10  # seconds that a killed process may take
_ENDING = 20  # seconds in which Ray ends, or is killed
_settled = threading.Event()  # Ray runs or is joined, or will not be
_ending = threading.Event()  # it is no fault that Ray's processes end
_ended = threading.Event()
Said = tuple[tuple[Any, ...], bytes]  # what RayLink hears


def main() -> None:
    """Serves the party at the other end of the pipe until that closes. Then nothing is left of Ray, and of its files."""
    link, inbox = RayLink(Connection(int(sys.argv[1]))), SimpleQueue[Said]()
    said, _ = link.hear()
    if not said:
        return
    _, workers, address, folder = said
    threading.Thread(target=_listen, args=(link, inbox, folder), daemon=True).start()
    problem: SecuretmError | None = None
    try:
        _begin(workers, address, folder)
    except SecuretmError as refused:
        problem = refused
    except Exception as failed:  # noqa: BLE001 - whatever Ray raises: its last words are for the operator
        problem = not_started(f"{type(failed).__name__}: {(str(failed).strip().splitlines() or [''])[0]}")
    _settled.set()
    if problem is not None:
        link.say("refused", problem)
        while inbox.get()[0]:
            pass  # the party ends this process, which never served
    else:
        RayHost(link, address).serve(inbox)
    left = [one for one in map(handle, family(os.getpid())[1:]) if one]
    _ending.set()
    ray.shutdown()
    _kill(left)  # Ray's helpers notice its end only after a while
    shutil.rmtree(folder, ignore_errors=True)
    _ended.set()


def _listen(link: RayLink, inbox: SimpleQueue[Said], folder: str) -> None:
    """Hears the party. When that has ended, so does this process, at once if Ray has not begun, and else in seconds."""
    said = link.hear()
    while said[0]:
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


def _begin(workers: int, address: str, folder: str) -> None:
    quiet: dict[str, Any] = {"configure_logging": False, "log_to_driver": False}
    if not address:
        session = str(Path(folder) / SESSION)
        ray.init("local", num_cpus=workers, include_dashboard=False, _temp_dir=session, **quiet)
        _end_with(named(os.getpid(), _NEEDED))
        return
    check_closed(address, os.environ)
    ray.init(address, **quiet)
    machines = [one["NodeManagerAddress"] for one in ray.nodes()]
    others = [machine for machine in machines if not is_loopback(machine)]
    if others and not has_tls(os.environ):
        raise Failed(
            "the Ray cluster at {address} has machines at {others}, and TLS is off",
            hint="use TLS (docs/how-to/cluster.md), or a cluster on this machine alone",
            address=address,
            others=", ".join(others),
        )
    processors = int(ray.cluster_resources().get("CPU", 0))
    if processors < workers:
        raise Failed(
            "the Ray cluster at {address} has {found} processors, and [engine] asks for {workers} workers",
            hint="take fewer workers in [engine], or add machines to the cluster",
            address=address,
            found=processors,
            workers=workers,
        )


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


class RayHost:
    """Actors by name, and what the party says about them."""

    def __init__(self, link: RayLink, address: str) -> None:
        self.link, self.address = link, address
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
                case ():
                    return
                case ("start", name):
                    self._start(name)
                case ("work",):
                    self._work, self._number = ray.put(content), self._number + 1
                case ("give", name, ticket):
                    self._give(name, ticket, content)

    def _start(self, name: str) -> None:
        self._actors[name] = self._made.remote()
        self._actors[name].versions.remote().future().add_done_callback(partial(self._begun, name))

    def _begun(self, name: str, found: Any) -> None:
        """Looks at a worker that has begun, before it gets a task."""
        try:
            if found.exception() is None:
                check_versions(found.result())
            if not self.address and (heard := heard_elsewhere(os.getpid())):
                raise Failed(
                    "Ray listens on {addresses}, where other machines can reach it, so it was ended",
                    hint="this is a fault of securetm or of a new version of Ray: please report it, and use the engine `pool` "
                    "meanwhile",
                    addresses=", ".join(heard),
                )
        except SecuretmError as problem:
            self.link.say("refused", problem)
        else:
            self.link.say("begun", name)

    def _give(self, name: str, ticket: int, content: bytes) -> None:
        actor = self._actors[name]
        if self._holding.get(name) != self._number:
            self._holding[name] = self._number
            actor.hold.remote(self._work)  # an actor's calls come in their order
        actor.answer.remote(content).future().add_done_callback(partial(self._answered, name, ticket))

    def _answered(self, name: str, ticket: int, found: Any) -> None:
        problem = found.exception()
        if problem is None:
            self.link.say("done", name, ticket, content=found.result())
        else:
            self.link.say("lost", name, f"was lost by Ray ({type(problem).__name__})")


def _no_answer(address: str, problem: str) -> Failed:
    return Failed(
        "no Ray cluster answers at {address}: {problem}",
        hint="is it started, is that the address of its first machine, and has it the same TLS settings? "
        "(docs/how-to/cluster.md)",
        address=address,
        problem=problem,
    )


if __name__ == "__main__":
    main()
