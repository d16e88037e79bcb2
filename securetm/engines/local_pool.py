"""The engine `pool`: processes on this machine, which map the shards of a corpus by themselves. No network.

A process that is lost in a call, at whatever moment, is replaced, and its task is carried out again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from queue import SimpleQueue
from threading import Thread
from typing import Any, Self, cast

from securetm.data_classes import dataclass, field
from securetm.engines.tasks import THREADS, Crew, Event, TriedTask, packed, packed_outcome, tried, unpacked
from securetm.settings import require

HELLO, WORK, TASK = b"hello", b"work", b"task"  # the first message of a worker; what goes before a message to it


def serve(channel_number: int) -> None:
    """Answers on the channel with that number until its other end closes."""
    channel, inbox = Connection(channel_number), SimpleQueue[bytes]()
    Thread(target=_receive, args=(channel, inbox), daemon=True).start()
    _send(channel, HELLO)
    work: TriedTask[Any] = TriedTask()  # where it cannot be made here, each task says so

    def answer(task: bytes) -> Any:
        return work.value()(unpacked(task))

    while True:
        kind, content = inbox.get(), inbox.get()
        if kind == WORK:
            work = tried(unpacked, content)
        else:
            _send(channel, packed_outcome(tried(answer, content)))


def _receive(channel: Connection, inbox: SimpleQueue[bytes]) -> None:
    """Takes messages in a thread of its own, so that the end of the party's process is seen in the middle of a task too."""
    try:
        while True:
            inbox.put(channel.recv_bytes())
    finally:
        os._exit(0)  # nothing is left to do, and nobody to tell


def _send(channel: Connection, content: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # the other thread sees it too, and ends the process
        channel.send_bytes(content)


_BEGIN = "import sys; sys.path[:] = {path!r}; from securetm.engines.local_pool import serve; serve({channel})"
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
                env=os.environ | dict.fromkeys(THREADS, str(threads)),
                pass_fds=(there.fileno(),),
                process_group=0,
            )
        return cls(name, place, process, here)

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


MOST_WORKERS = 256


@dataclass(eq=False)
class LocalPool(Crew):
    """An engine of so many processes. They start with the first tasks, stay for the next call, and end with this process."""

    workers: int = 0  # 0: one for each processor
    threads: int = 1  # of each worker

    def __post_init__(self) -> None:
        for name, least in (("workers", 0), ("threads", 1)):
            value = getattr(self, name)
            require(least <= value <= MOST_WORKERS, "[engine]", name, value, f"must be from {least} to {MOST_WORKERS}")
        self.workers = self.workers or os.cpu_count() or 1
        self._started = self._call = 0
        self._work = b""
        self._running: dict[str, LocalWorker] = {}

    def begin(self, work: bytes) -> None:
        self._call, self._work = self._call + 1, work

    def free(self, wanted: int) -> Sequence[str]:
        for worker in [one for one in self._running.values() if not one.busy and one.process.poll() is not None]:
            self._lost(worker)
        found = [name for name, worker in self._running.items() if not worker.busy]
        while len(found) < wanted and len(self._running) < self.workers:
            found.append(self._start())
        return sorted(found, key=self.place)[:wanted]

    def place(self, worker: str) -> int:
        return self._running[worker].place

    def give(self, worker: str, task: Any) -> None:
        self._running[worker].give(self._call, self._work, packed("a task", task))

    def events(self) -> Sequence[Event]:
        """Waits until a busy worker has a result or is lost; nothing, if that was of an earlier call or it has only begun."""
        busy = {worker.channel: worker for worker in self._running.values() if worker.busy}
        ready = [busy[cast("Connection", channel)] for channel in wait(list(busy))]
        return [event for worker in ready if (event := self._heard(worker)) is not None]

    def close(self) -> None:
        for worker in self._running.values():
            worker.channel.close()  # all of them end at the same time
        while self._running:
            self._lost(next(iter(self._running.values())))

    def _start(self) -> str:
        self._started += 1
        taken = {worker.place for worker in self._running.values()}
        place = next(place for place in range(self.workers) if place not in taken)
        worker = LocalWorker.start(f"worker {self._started}", place, self.threads)
        self._running[worker.name] = worker
        return worker.name

    def _heard(self, worker: LocalWorker) -> Event | None:
        of_this_call = worker.call == self._call
        try:
            content = worker.heard()
        except (EOFError, OSError):
            how = self._lost(worker)
            return Event(worker.name, lost=how) if of_this_call else None
        if content is None or not of_this_call:
            return None
        return Event(worker.name, unpacked(content))

    def _lost(self, worker: LocalWorker) -> str:
        del self._running[worker.name]
        return worker.end()
