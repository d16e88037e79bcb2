"""One process of a local pool, seen from the party's process: started, given tasks, heard, ended. It retries nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from typing import Self

from securetm.engines.worker_process import HELLO, TASK, WORK

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_BEGIN = "import sys; sys.path[:] = {path!r}; from securetm.engines.worker_process import serve; serve({channel})"
_DYING = 10.0  # seconds that a process may take from closing its files to its end


@dataclass(eq=False)
class LocalWorker:
    """A process that carries out tasks. It is a new program, so it inherits no thread, no lock and no open file."""

    name: str
    place: int  # among the workers of its pool
    process: subprocess.Popen[bytes] = field(repr=False)
    channel: Connection = field(repr=False)
    call: int = 0  # whose work it has
    busy: bool = False
    _began: bool = False

    @classmethod
    def start(cls, name: str, place: int, threads: int) -> Self:
        """Starts a process that computes with so many threads. Ctrl-C in the terminal does not reach it."""
        here, there = Pipe()
        code = _BEGIN.format(path=sys.path, channel=there.fileno())
        with there:
            process = subprocess.Popen(  # noqa: S603 - this Python, and nothing from outside
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__.fileno() if sys.__stderr__ else subprocess.DEVNULL,  # results of a command stay its own
                env=os.environ | dict.fromkeys(_THREADS, str(threads)),
                pass_fds=(there.fileno(),),
                process_group=0,
            )
        return cls(name, place, process, here)

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self.process.poll() is not None

    def give(self, call: int, work: bytes, task: bytes) -> None:
        """Sends a task, and the work of its call before the first one. A process that is gone shows it when it is heard."""
        has_work, self.call, self.busy = self.call == call, call, True
        with suppress(OSError):
            if not has_work:
                self._send(WORK, work)
            self._send(TASK, task)

    def heard(self) -> bytes | None:
        """What came of its task, or None: it has only begun. Raises EOFError or OSError where it is lost."""
        content = self.channel.recv_bytes()
        if not self._began:
            self._began = content == HELLO
            return None
        self.busy = False
        return content

    def end(self) -> str:
        """Ends the process if it still runs, and says how it ended."""
        self.channel.close()  # it sees that, and ends
        try:
            status = self.process.wait(_DYING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return how if self._began else f"{how}, before it began"

    def _send(self, kind: bytes, content: bytes) -> None:
        self.channel.send_bytes(kind)
        self.channel.send_bytes(content)
