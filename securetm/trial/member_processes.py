"""The processes of a trial: a coordinator and its parties, each as its own command with its own log. They speak over TLS alone.

Whatever ends the block ends them, too, each by its number: none is left running.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from securetm.private_files import writing
from securetm.trial.trial_errors import MemberEnded

_GRACE = 10.0  # seconds in which a process that is asked to end may write its files
_SHOWN = 400  # characters of a log, its last ones
_COMMAND = (sys.executable, "-m", "securetm.cli.main")


@dataclass
class MemberProcess:
    """One command that runs."""

    name: str
    log: Path
    running: subprocess.Popen[bytes]

    @property
    def code(self) -> int | None:
        """How it ended; None while it runs."""
        return self.running.poll()

    @property
    def number(self) -> int:
        """Its number in the operating system."""
        return self.running.pid


class MemberProcesses:
    """Starts the commands, and ends what still runs when the block is left."""

    def __init__(self, logs: Path, threads: int = 1) -> None:
        self.members: list[MemberProcess] = []
        self._logs, self._threads = logs, {"OMP_NUM_THREADS": str(threads), "COLUMNS": "100"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        left = [one.running for one in self.members if one.code is None]
        for one in left:
            one.terminate()
        for one in left:
            try:
                one.wait(_GRACE)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()

    def start(self, name: str, command: Sequence[str]) -> None:
        """Starts `securetm` with these arguments. Ctrl-C at the terminal reaches this process alone, which ends the others."""
        path = self._logs / f"{name}.log"
        with writing(path) as log:
            environment = {**_inherited(os.environ), **self._threads}
            running = subprocess.Popen(  # noqa: S603 - our own command, with no shell
                [*_COMMAND, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self.members.append(MemberProcess(name, path, running))

    def all_ended(self) -> bool:
        """Whether every process has ended well. One that ended otherwise is an error at once."""
        for one in self.members:
            if one.code:
                said = one.log.read_text("utf-8", "replace").strip()[-_SHOWN:]
                raise MemberEnded(one.name, one.code, said, str(one.log))
        return all(one.code == 0 for one in self.members)


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, with this copy of the package first on the path, wherever the process starts."""
    package = str(Path(__file__).resolve().parents[2])
    path = [package, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    return {**environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}
