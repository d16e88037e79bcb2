"""What a party and its Ray driver say to each other, through a pipe that both hold. It knows no Ray."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from securetm.errors import SecuretmError


@dataclass(frozen=True)
class RaySettings:
    """What the driver is started with. It goes first, and once."""

    workers: int
    address: str  # of a cluster that is there; empty: one is started on this machine
    folder: str  # of the driver's own files, for their owner alone


@dataclass(frozen=True)
class StartWorker:
    """Starts an actor under this name."""

    worker: str


@dataclass(frozen=True)
class WorkerBegun:
    """The actor of this name runs, or was lost before: then it is missed with its first task."""

    worker: str


@dataclass(frozen=True)
class NextWork:
    """What all tasks from now on share follows."""


@dataclass(frozen=True)
class GiveTask:
    """A task for the actor of this name follows."""

    worker: str
    ticket: int


@dataclass(frozen=True)
class TaskDone:
    """What came of it follows."""

    worker: str
    ticket: int


@dataclass(frozen=True)
class WorkerLost:
    """The actor of this name is gone."""

    worker: str
    how: str


@dataclass(frozen=True)
class DriverRefused:
    """Ray does not start, or must not be used."""

    problem: SecuretmError


FOLLOWED = (NextWork, GiveTask, TaskDone)  # by bytes, which are sent as they are: they may be large


class RayLink:
    """One end of the pipe. Any thread may say something; one hears."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._one_at_a_time = pipe, threading.Lock()

    def say(self, message: object, content: bytes = b"") -> None:
        """Sends a message; to nobody, if the other end is gone."""
        with self._one_at_a_time, suppress(OSError):  # who hears on this end finds out
            self._pipe.send(message)
            if isinstance(message, FOLLOWED):
                self._pipe.send_bytes(content)

    def hear(self) -> tuple[object | None, bytes]:
        """Waits for the next message, and what follows it; no message if the other end is gone."""
        try:
            message = self._pipe.recv()
            return message, self._pipe.recv_bytes() if isinstance(message, FOLLOWED) else b""
        except (EOFError, OSError):
            return None, b""

    def more(self) -> bool:
        """Whether `hear` would not wait."""
        try:
            return self._pipe.poll()
        except OSError:
            return True

    def close(self) -> None:
        """The other end hears that this one is gone."""
        self._pipe.close()
