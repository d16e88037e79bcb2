"""Tasks of an engine: how they and what came of them travel, and how they are handed to workers that may be lost at any moment.

What travels was made by the same program of the same user a moment ago, so it is pickled; nothing from outside ever is.

Every worker has tasks of its own: one, the one after as many as there are workers, and so on. So in the next call the same
shards come to it again, whose pages it has. Who has none left, or would run far ahead of the others, takes the next task of
whoever is furthest behind: sums are added in the order of tasks, and what is ahead waits in memory. A worker that replaces a
lost one has its tasks. A task with which too many workers were lost is given up. Each task has one result, which is handed on
as soon as it is there.
"""

from __future__ import annotations

import pickle
import traceback
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeVar, cast

from securetm.contracts import Engine
from securetm.data_classes import dataclass
from securetm.errors import Failed, SecuretmError

T = TypeVar("T")
R = TypeVar("R")
_PLACES = 3  # in the code, of an exception
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")  # settings of a worker


class CannotBeSent(SecuretmError):
    """{what} cannot be sent to another process ({problem})"""

    what: str
    problem: str
    hint = "parts that another process carries out have to be picklable; choose the engine in-process for this one"


@dataclass(frozen=True)
class TriedTask(Generic[R]):
    result: R | None = None
    error: Exception | None = None
    where: str = ""  # the last places in the code that the error came through

    def value(self) -> R:
        if self.error is not None:
            raise self.error from Failed(
                "this happened in a worker, at {where}", hint="read the error that this one is the cause of", where=self.where
            )
        return cast("R", self.result)


def packed(what: str, thing: object) -> bytes:
    """The thing as bytes, or a refusal that calls it `what`."""
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception as problem:
        raise CannotBeSent(what, f"{type(problem).__name__}: {problem}") from problem


def unpacked(content: bytes | memoryview) -> Any:
    """What `packed` made bytes of, in another process of the same program."""
    return pickle.loads(content)  # noqa: S301 - from a process that this one started, or from the one that started it


def tried(work: Callable[[T], R], task: T) -> TriedTask[R]:
    try:
        return TriedTask(work(task))
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - the party decides what becomes of it
        return failed(problem)


def packed_outcome(outcome: TriedTask[R]) -> bytes:
    """The outcome as bytes; the refusal in its place, where its result is not picklable."""
    try:
        return packed("the result of a task", outcome)
    except CannotBeSent as problem:
        return packed("an error", failed(problem))


def failed(problem: BaseException) -> TriedTask[Any]:
    """The outcome of a task that raised this: the same exception if it can be sent, or one that names it."""
    where = " <- ".join(f"{at.filename}:{at.lineno}" for at in reversed(traceback.extract_tb(problem.__traceback__)[-_PLACES:]))
    if isinstance(problem, Exception) and _can_be_sent(problem):
        return TriedTask(error=problem, where=where)
    unsent = Failed(
        "a worker failed with {name}, at {where}",
        hint="this is a fault of the code at that place: please report it to its author",
        name=type(problem).__qualname__,  # what it said may quote documents
        where=where,
    )
    return TriedTask(error=unsent, where=where)


def _can_be_sent(problem: Exception) -> bool:
    """Whether another process gets the same exception: many classes cannot be made again from what they say."""
    try:
        again = unpacked(packed("an error", problem))
    except Exception:  # noqa: BLE001 - whatever a stranger's class raises when it is made again
        return False
    return type(again) is type(problem)


MOST_AHEAD = 1  # for each worker, by how many tasks one may be ahead of another
MOST_LOSSES = 4  # of workers with the same task: then it is given up


@dataclass(frozen=True)
class Event:
    """Something that happened to a worker: what came of its task, or how it was lost."""

    worker: str
    outcome: TriedTask[Any] | None = None  # None: the worker is lost
    lost: str = ""  # how: "was killed by SIGKILL"


class Crew(Engine):
    """An engine that hands tasks to workers which may be lost. Its methods are called by `carried_out`.

    A worker that takes the place of a lost one has a name of its own. Nothing of an earlier call is reported.
    """

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """The results as they arrive; one call at a time."""
        try:
            self.begin(packed("the question", work))
            yield from carried_out(self, self.workers, tasks)
        finally:
            self.begin(b"")  # what workers still do for a call that was given up is of no use to the next

    @abstractmethod
    def begin(self, work: bytes) -> None:
        """What all tasks of the next call share. What is still done for an earlier one is not reported."""

    @abstractmethod
    def free(self, wanted: int) -> Sequence[str]:
        """At most so many workers that have no task, in the order of their places. Missing workers are started."""

    @abstractmethod
    def place(self, worker: str) -> int:
        """The worker's place among all, from 0. Who replaces a lost worker has its place."""

    @abstractmethod
    def give(self, worker: str, task: Any) -> None:
        """Sends a task to a free worker, and before its first one what all share. `events` says if it is lost meanwhile."""

    @abstractmethod
    def events(self) -> Sequence[Event]:
        """Waits until something happens to a worker that has a task, and says what."""


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


def carried_out(crew: Crew, workers: int, tasks: Sequence[T]) -> Iterator[Any]:
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
                raise Failed(
                    "a task was given up: {losses} workers were lost with it, and the last one {how}",
                    hint="a worker that is killed again and again usually lacks memory: take fewer workers in [engine], or "
                    "smaller blocks",
                    losses=MOST_LOSSES,
                    how=event.lost,
                )
            waiting.again(task)
        _hand_out(crew, tasks, waiting, held)  # before the results are looked at, so that no worker waits for that
        for outcome in done:
            yield outcome.value()


def _hand_out(crew: Crew, tasks: Sequence[T], waiting: OwnTasks, held: dict[str, int]) -> None:
    for worker in crew.free(len(waiting)) if len(waiting) else ():
        held[worker] = waiting.next_for(crew.place(worker))
        crew.give(worker, tasks[held[worker]])
