"""A party's side of its Ray driver: the process is started with its environment, heard, and ended. It hands out no task."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path

from securetm.engines.listening import is_loopback
from securetm.engines.ray_folder import RayFolder
from securetm.engines.ray_links import RayLink, RaySettings
from securetm.private_files import writing

_COMMAND = (sys.executable, "-m", "securetm.engines.ray_host")
_GRACE = 30.0  # seconds in which Ray may end its processes
_LOG = "driver.log"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")  # one each, in every worker

# Set to 0, Ray takes 127.0.0.1 as the address of this machine, and listens there alone. Otherwise it puts another address of
# this machine in the place of 127.0.0.1. The name is of other systems, where 0 is Ray's default.
HERE_ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


class RayDriver:
    """The process, from its start to `end`."""

    def __init__(self, workers: int, address: str) -> None:
        self.folder = RayFolder()
        ours, theirs = Pipe()
        own = given_environment(os.environ, address) if address else local_environment(os.environ, self.folder.token)
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
        self.link.say(RaySettings(workers, address, str(self.folder.path)))

    @property
    def number(self) -> int:
        """The number of the process in the operating system."""
        return self._process.pid

    def last_words(self) -> str:
        """The last line that the process wrote, for its operator."""
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


def given_environment(inherited: Mapping[str, str], address: str) -> dict[str, str]:
    """The environment of the driver of a given cluster. Where that is on this machine alone, so is the driver."""
    here = {HERE_ALONE: "0"} if is_loopback(address.rpartition(":")[0]) else {}
    return {**environment(inherited), **here}


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
        **dict.fromkeys(_THREADS, "1"),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        HERE_ALONE: "0",  # whether it holds is checked at each start (ray_host)
        "RAY_worker_niceness": "0",  # the party says how nice it is
    }
