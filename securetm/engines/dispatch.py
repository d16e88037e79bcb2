"""Hands an engine's tasks to workers that may be lost at any moment. It knows no process and no cluster.

A worker gets its next task when its last one is done. The task of a lost worker goes to another; a task with which too many
workers were lost is given up. Each task has one result, which is handed on as soon as it is there.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from securetm.engines.carrying import TriedTask
from securetm.engines.engine_errors import TaskGivenUp

T = TypeVar("T")
Given = TypeVar("Given", contravariant=True)
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
        """At most so many workers that have no task. Missing workers are started."""
        ...

    def give(self, worker: str, task: Given) -> None:
        """Sends a task to a free worker. If it is lost meanwhile, `events` says so."""
        ...

    def events(self) -> Sequence[Event]:
        """Waits until something happens to a worker that has a task, and says what."""
        ...


def carried_out(crew: Crew[T], tasks: Sequence[T]) -> Iterator[Any]:
    """The result of each task, as it arrives; raises what the work raises."""
    waiting, held, losses = deque(range(len(tasks))), dict[str, int](), Counter[int]()
    while waiting or held:
        _hand_out(crew, tasks, waiting, held)
        done = []
        for event in crew.events():
            place = held.pop(event.worker)
            if event.outcome is not None:
                done.append(event.outcome)
                continue
            losses[place] += 1
            if losses[place] == MOST_LOSSES:
                raise TaskGivenUp(MOST_LOSSES, event.lost)
            waiting.appendleft(place)
        _hand_out(crew, tasks, waiting, held)  # before the results are looked at, so that no worker waits for that
        for outcome in done:
            yield outcome.value()


def _hand_out(crew: Crew[T], tasks: Sequence[T], waiting: deque[int], held: dict[str, int]) -> None:
    for worker in crew.free(len(waiting)) if waiting else ():
        held[worker] = waiting.popleft()
        crew.give(worker, tasks[held[worker]])
