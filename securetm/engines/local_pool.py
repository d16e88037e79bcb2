"""The engine `pool`: processes on this machine, which map the shards of a corpus by themselves. No network.

A process that is lost in a call, at whatever moment, is replaced, and its task is carried out again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar, cast

from securetm.contracts import Engine
from securetm.engines.carrying import packed, unpacked
from securetm.engines.dispatch import Event, carried_out
from securetm.engines.local_worker import LocalWorker
from securetm.settings import require

T = TypeVar("T")
R = TypeVar("R")
MOST_WORKERS = 256


@dataclass(eq=False)
class LocalPool(Engine):
    """An engine of so many processes. They start with the first tasks, stay for the next call, and end with this process."""

    workers: int = 0  # 0: one for each processor
    threads: int = 1  # of each worker
    _crew: _LocalCrew = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuses numbers that cannot be."""
        for name, least in (("workers", 0), ("threads", 1)):
            value = getattr(self, name)
            require(least <= value <= MOST_WORKERS, "[engine]", name, value, f"must be from {least} to {MOST_WORKERS}")
        self.workers = self.workers or os.cpu_count() or 1
        self._crew = _LocalCrew(self.workers, self.threads)

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """The results as they arrive; one call at a time."""
        try:
            self._crew.begin(packed("the question", work))
            yield from carried_out(self._crew, self.workers, tasks)
        finally:
            self._crew.begin(b"")  # what workers still do for a call that was given up is of no use to the next

    def close(self) -> None:
        """Ends every worker. A later call starts new ones."""
        self._crew.close()


class _LocalCrew:
    """The processes of a pool (dispatch.Crew)."""

    def __init__(self, most: int, threads: int) -> None:
        self._most, self._threads = most, threads
        self._started = self._call = 0
        self._work = b""
        self._workers: dict[str, LocalWorker] = {}

    def begin(self, work: bytes) -> None:
        """Begins a call."""
        self._call, self._work = self._call + 1, work

    def free(self, wanted: int) -> Sequence[str]:
        """At most so many workers that have no task."""
        for worker in [one for one in self._workers.values() if one.has_ended and not one.busy]:
            self._lost(worker)
        found = [name for name, worker in self._workers.items() if not worker.busy]
        while len(found) < wanted and len(self._workers) < self._most:
            found.append(self._start())
        return sorted(found, key=self.place)[:wanted]

    def place(self, worker: str) -> int:
        """The worker's place, which was that of the lost one that it replaces."""
        return self._workers[worker].place

    def give(self, worker: str, task: Any) -> None:
        """Sends a task, and before it the work, once to each worker."""
        self._workers[worker].give(self._call, self._work, packed("a task", task))

    def events(self) -> Sequence[Event]:
        """Waits until a busy worker has a result or is lost; nothing, if that was of an earlier call or it has only begun."""
        busy = {worker.channel: worker for worker in self._workers.values() if worker.busy}
        ready = [busy[cast(Connection, channel)] for channel in wait(list(busy))]
        return [event for worker in ready if (event := self._heard(worker)) is not None]

    def close(self) -> None:
        """Ends every worker."""
        for worker in self._workers.values():
            worker.channel.close()  # all of them end at the same time
        while self._workers:
            self._lost(next(iter(self._workers.values())))

    def _start(self) -> str:
        self._started += 1
        taken = {worker.place for worker in self._workers.values()}
        place = next(place for place in range(self._most) if place not in taken)
        worker = LocalWorker.start(f"worker {self._started}", place, self._threads)
        self._workers[worker.name] = worker
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
        del self._workers[worker.name]
        return worker.end()
