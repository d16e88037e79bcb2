"""The engine that carries out tasks on Ray: on this machine, or on a cluster of the party's own that lets nobody else in.

Actors read documents where they lie. The question with its state is sent once a round, results are added as they arrive, and
the tasks of a lost actor are carried out by another. Everything that Ray sees is inside the party.

Ray opens the folders that it makes to everybody, so they lie inside one of the party's own with a fresh token, which is gone
once the cluster is. The driver of a party that was killed deletes it; where the driver was killed, too, the next start does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

from securetm.data_classes import dataclass
from securetm.engines.listening import is_loopback
from securetm.engines.tasks import THREADS, Crew, Event, packed, unpacked
from securetm.entropy import OperatingSystem
from securetm.errors import Failed, Mistake
from securetm.private_files import private_file, writing
from securetm.settings import require

TOKEN = "token"  # noqa: S105 - the name of a file
_LOCK = "lock"  # held as long as somebody uses the folder
_PREFIX = "securetm-ray-"
_LONGEST = 20  # characters of the folder above: the path of a socket may have about a hundred


class RayFolder:
    """A new folder. `lock` is an open file to be handed to the driver, too."""

    def __init__(self) -> None:
        above = folder_of_temporary_files()
        remove_left(above)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        private_file(self.path / f"{_LOCK}.new")
        self.lock: IO[str] = (self.path / f"{_LOCK}.new").open("r+")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        (self.path / f"{_LOCK}.new").rename(self.path / _LOCK)  # now another start can tell that it is in use
        with writing(self.token) as file:
            file.write(OperatingSystem().bytes(32).hex().encode())

    @property
    def token(self) -> Path:
        return self.path / TOKEN

    def remove(self) -> None:
        self.lock.close()
        shutil.rmtree(self.path, ignore_errors=True)


def folder_of_temporary_files() -> Path:
    """Where such folders lie: with temporary files, unless that path is too long for sockets."""
    usual = tempfile.gettempdir()
    return Path(usual if len(usual) <= _LONGEST else "/tmp")  # noqa: S108 - the folder in it is its owner's alone


def remove_left(above: Path) -> None:
    """Deletes this user's folders that nobody uses any more."""
    for folder in above.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody uses it, or it is another user's
            if folder.stat().st_uid == os.getuid():
                with (folder / _LOCK).open("r+") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)


_COMMAND = (sys.executable, "-m", "securetm.engines.ray_host")
_GRACE = 30.0  # seconds in which Ray may end its processes
_LOG = "driver.log"

# Set to 0, Ray takes 127.0.0.1 as the address of this machine, and listens there alone. Otherwise it puts another address of
# this machine in the place of 127.0.0.1. The name is of other systems, where 0 is Ray's default.
HERE_ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


FOLLOWED = ("work", "give", "done")  # messages that bytes follow, sent as they are: they may be large


class RayLink:
    """One end of the pipe between a party and its driver. Any thread may say something; one hears.

    First the party says `settings`: how many workers, the address, and the folder of the driver's own files. Then it says
    `start` with a worker's name, `work` (what all tasks from now on share) and `give` with a name and a ticket; the driver says
    `begun` with a name (also of a worker that was lost before: it is missed with its first task), `done` with a name and its
    ticket, `lost` with a name and how, and `refused` with a problem: Ray does not start, or must not be used.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._one_at_a_time = pipe, threading.Lock()

    def say(self, *message: Any, content: bytes = b"") -> None:
        """Sends a message; to nobody, if the other end is gone."""
        with self._one_at_a_time, suppress(OSError):  # who hears on this end finds out
            self._pipe.send(message)
            if message[0] in FOLLOWED:
                self._pipe.send_bytes(content)

    def hear(self) -> tuple[tuple[Any, ...], bytes]:
        """Waits for the next message, and what follows it; an empty message if the other end is gone."""
        try:
            message = self._pipe.recv()
            return message, self._pipe.recv_bytes() if message[0] in FOLLOWED else b""
        except (EOFError, OSError):
            return (), b""

    def more(self) -> bool:
        """Whether `hear` would not wait."""
        try:
            return self._pipe.poll()
        except OSError:
            return True

    def close(self) -> None:
        self._pipe.close()


class RayDriver:
    def __init__(self, workers: int, address: str) -> None:
        self.folder = RayFolder()
        ours, theirs = Pipe()
        if address:  # where that is on this machine alone, so is the driver
            here = {HERE_ALONE: "0"} if is_loopback(address.rpartition(":")[0]) else {}
            own = {**environment(os.environ), **here}
        else:
            own = local_environment(os.environ, self.folder.token)
        with writing(self.folder.path / _LOG) as log:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter and a module of our own
                [*_COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=own,
                pass_fds=(theirs.fileno(), self.folder.lock.fileno()),
                start_new_session=True,  # Ctrl-C reaches the party, which ends this
            )
        theirs.close()
        self.link = RayLink(ours)
        self.link.say("settings", workers, address, str(self.folder.path))

    @property
    def number(self) -> int:
        return self._process.pid

    def last_words(self) -> str:
        with suppress(OSError):
            lines = (self.folder.path / _LOG).read_text("utf-8", "replace").split("\n")
            return next((line for line in reversed(lines) if line.strip()), "it said nothing")
        return "it said nothing"

    def end(self) -> None:
        """Ends Ray and all of its processes, and deletes its files."""
        self.link.close()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the others end with it
            self._process.wait()
        self.folder.remove()


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of every driver: the party's, where the modules of the party are found."""
    found = [str(Path(__file__).resolve().parents[2]), *(os.path.abspath(part) for part in sys.path if part)]
    path = os.pathsep.join(dict.fromkeys(found))
    return {**inherited, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"}


def local_environment(inherited: Mapping[str, str], token: Path) -> dict[str, str]:
    """The environment of a cluster of this party's own: none of its settings of Ray, but ours."""
    own = {name: value for name, value in inherited.items() if not name.upper().startswith("RAY_")}
    return {
        **environment(own),
        **dict.fromkeys(THREADS, "1"),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        HERE_ALONE: "0",  # whether it holds is checked at each start (ray_host)
        "RAY_worker_niceness": "0",  # the party says how nice it is
    }


WHERE = "[engine]"
MOST_WORKERS = 4096
_TLS_FILES = ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")


def check_address(address: str, environment: Mapping[str, str]) -> None:
    """Refuses a cluster that is not closed to others by a token and, beyond this machine, TLS."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise Mistake(
            "the address of a Ray cluster is {address!r}, which is not a host and a port",
            hint='write `address = "10.1.2.3:6379"`, or leave the address out: then the party starts Ray on its own machine',
            address=address,
        )
    home = Path(environment.get("HOME") or Path.home()) / ".ray" / "auth_token"
    token = environment.get("RAY_AUTH_TOKEN") or Path(environment.get("RAY_AUTH_TOKEN_PATH") or home).is_file()
    if environment.get("RAY_AUTH_MODE") != "token" or not token:
        raise Mistake(
            "no token is at hand for the Ray cluster at {address}, so anybody who reaches it could run programs as this party",
            hint="start the cluster and this party with RAY_AUTH_MODE=token and one RAY_AUTH_TOKEN_PATH "
            "(docs/how-to/cluster.md)",
            address=address,
        )
    if is_loopback(host):
        return  # whether all of the cluster is on this machine is looked at once it is joined
    unnamed = [f"{name} names no file" for name in _TLS_FILES if not Path(environment.get(name, "")).is_file()]
    if not has_tls(environment):
        unnamed = ["RAY_USE_TLS is not 1"]
    if unnamed:
        raise Mistake(
            "TLS is off for the Ray cluster at {address}, so documents and sums would cross the network as they are; {problem}",
            hint="start the cluster and this party with RAY_USE_TLS=1, RAY_TLS_SERVER_CERT, RAY_TLS_SERVER_KEY and "
            "RAY_TLS_CA_CERT (docs/how-to/cluster.md)",
            address=address,
            problem=unnamed[0],
        )


@dataclass(eq=False)
class RayEngine(Crew):
    """Actors of Ray, one task each at a time. Ray starts with the first task.

    If the driver is lost, so are all its workers, and another one is started.
    """

    workers: int = 0  # 0: one for each processor of this machine
    address: str = ""  # "host:port" of a cluster that is there; empty: one is started on this machine, for this party alone

    def __post_init__(self) -> None:
        require(0 <= self.workers <= MOST_WORKERS, WHERE, "workers", self.workers, f"must be from 0 to {MOST_WORKERS}")
        require(not self.address or self.workers > 0, WHERE, "workers", self.workers, "must be at least 1 beside an address")
        self.workers = self.workers or os.cpu_count() or 1
        if find_spec("ray") is None:
            raise Mistake("the engine ray needs Ray, which is not installed", hint="pip install 'securetm[ray]'")
        if self.address:
            check_address(self.address, os.environ)
        self._driver: RayDriver | None = None
        self._busy: dict[str, int] = {}  # the ticket of each worker's task; 0: it has none
        self._places: dict[str, int] = {}
        self._tickets, self._first, self._names = 0, 0, 0
        self._work, self._told = b"", False

    @property
    def driver(self) -> RayDriver:
        if self._driver is None:
            self._driver = RayDriver(self.workers, self.address)
            self._told = False
        return self._driver

    def begin(self, work: bytes) -> None:
        self._work, self._first, self._told = work, self._tickets + 1, False

    def free(self, wanted: int) -> Sequence[str]:
        """Workers that run and have no task. Missing ones are started, and are there once the cluster has room for them."""
        for place in sorted(set(range(self.workers)) - set(self._places.values())):
            self._names += 1
            name = f"worker {self._names}"
            self._places[name] = place
            self.driver.link.say("start", name)
        return sorted((name for name, ticket in self._busy.items() if not ticket), key=self.place)[:wanted]

    def place(self, worker: str) -> int:
        return self._places[worker]

    def give(self, worker: str, task: Any) -> None:
        if not self._told:
            self.driver.link.say("work", content=self._work)
        self._told = True
        self._tickets += 1
        self._busy[worker] = self._tickets
        self.driver.link.say("give", worker, self._tickets, content=packed("a task", task))

    def events(self) -> Sequence[Event]:
        found = self._heard(*self.driver.link.hear())
        while self._driver is not None and self._driver.link.more():
            found += self._heard(*self._driver.link.hear())
        return found

    def _heard(self, message: tuple[Any, ...], content: bytes) -> list[Event]:
        match message:
            case ("begun", worker):
                self._busy[worker] = 0
                return []
            case ("done", worker, ticket):
                self._busy[worker] = 0
                return [Event(worker, unpacked(content))] if ticket >= self._first else []
            case ("lost", worker, how):
                ticket = self._busy.pop(worker, 0)
                self._places.pop(worker, None)
                return [Event(worker, lost=how)] if ticket >= self._first else []
            case ("refused", problem):
                self.close()
                raise problem
        said, lost = self.driver.last_words(), self._busy  # the driver is gone, and its workers with it
        self.close()
        if all(ticket < self._first for ticket in lost.values()):  # none had a task yet
            raise not_started(said)
        return [Event(name, lost=f"ended with Ray: {said}") for name, ticket in lost.items() if ticket >= self._first]

    def close(self) -> None:
        driver, self._driver, self._busy, self._places = self._driver, None, {}, {}
        if driver is not None:
            driver.end()


def not_started(problem: str) -> Failed:
    return Failed(
        "Ray did not start: {problem}",
        hint="the engine `pool` needs no cluster; the page docs/how-to/cluster.md says what Ray needs",
        problem=problem,
    )


def has_tls(environment: Mapping[str, str]) -> bool:
    return environment.get("RAY_USE_TLS", "").lower() in ("1", "true")
