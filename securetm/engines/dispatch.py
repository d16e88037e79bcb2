"""Hands an engine's tasks to workers that may be lost at any moment. It knows no process and no cluster.

Every worker has tasks of its own: one, the one after as many as there are workers, and so on. So in the next call the same
shards come to it again, whose pages it has. Who has none left, or would run far ahead of the others, takes the next task of
whoever is furthest behind: sums are added in the order of tasks, and what is ahead waits in memory. A worker that replaces a
lost one has its tasks. A task with which too many workers were lost is given up. Each task has one result, which is handed on
as soon as it is there.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from securetm.engines.carrying import TriedTask
from securetm.engines.engine_errors import TaskGivenUp

T = TypeVar("T")
Given = TypeVar("Given", contravariant=True)
MOST_AHEAD = 1  # for each worker, by how many tasks one may be ahead of another
MOST_LOSSES = 4  # of workers with the same task: then it is given up


@dataclass(frozen=True)
class Event:
    """Something that happened to a worker: what came of its task, or how it was lost."""

    worker: str
    outcome: TriedTask[Any] | None = None  # None: the worker is lost
    lost: str = ""  # how: "was killed by SIGKILL"


class Crew(Protocol[Given]):
    """The workers of one engine in one call, as the dispatch sees them.

    A worker that takes the place of a lost one has a name of its own. Nothing of an earlier call is reported.
    """

    def free(self, wanted: int) -> Sequence[str]:
        """At most so many workers that have no task, in the order of their places. Missing workers are started."""
        ...

    def place(self, worker: str) -> int:
        """The worker's place among all, from 0. Who replaces a lost worker has its place."""
        ...

    def give(self, worker: str, task: Given) -> None:
        """Sends a task to a free worker. If it is lost meanwhile, `events` says so."""
        ...

    def events(self) -> Sequence[Event]:
        """Waits until something happens to a worker that has a task, and says what."""
        ...


class OwnTasks:
    """The tasks that wait, by number: some for each worker."""

    def __init__(self, tasks: int, workers: int) -> None:
        self._waiting = [deque(range(own, tasks, workers)) for own in range(min(workers, tasks))]
        self._workers = workers

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    def next_for(self, place: int) -> int:
        """The next task of the worker with this place, or of the one that is furthest behind."""
        behind = min(filter(None, self._waiting), key=itemgetter(0))
        own = self._waiting[place] if place < len(self._waiting) else behind
        return (own if own and own[0] - behind[0] <= MOST_AHEAD * self._workers else behind).popleft()

    def again(self, task: int) -> None:
        """Takes back a task that was not carried out. It is the next one of whose it was."""
        self._waiting[task % self._workers].appendleft(task)


def carried_out(crew: Crew[T], workers: int, tasks: Sequence[T]) -> Iterator[Any]:
    """The result of each task, as it arrives; raises what the work raises. A crew of so many workers carries them out."""
    waiting, held, losses = OwnTasks(len(tasks), workers), dict[str, int](), Counter[int]()
    while len(waiting) or held:
        _hand_out(crew, tasks, waiting, held)
        done = []
        for event in crew.events():
            task = held.pop(event.worker)
            if event.outcome is not None:
                done.append(event.outcome)
                continue
            losses[task] += 1
            if losses[task] == MOST_LOSSES:
                raise TaskGivenUp(MOST_LOSSES, event.lost)
            waiting.again(task)
        _hand_out(crew, tasks, waiting, held)  # before the results are looked at, so that no worker waits for that
        for outcome in done:
            yield outcome.value()


def _hand_out(crew: Crew[T], tasks: Sequence[T], waiting: OwnTasks, held: dict[str, int]) -> None:
    for worker in crew.free(len(waiting)) if len(waiting) else ():
        held[worker] = waiting.next_for(crew.place(worker))
        crew.give(worker, tasks[held[worker]])
