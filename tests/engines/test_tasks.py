"""Tasks between processes, and handing them to a crew whose workers are lost whenever the test says so."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from securetm.engines.tasks import (
    MOST_AHEAD,
    MOST_LOSSES,
    CannotBeSent,
    Event,
    OwnTasks,
    TriedTask,
    carried_out,
    failed,
    packed,
    packed_outcome,
    tried,
    unpacked,
)
from securetm.errors import Failed, SettingMistakes, UnfitBlocks


class Stubborn(Exception):
    """An exception that cannot be made again from what it says."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}: the words of a document")


class Changed(Exception):
    """An exception that comes out as another one."""

    def __reduce__(self) -> Any:
        return RuntimeError, ("another",)


@dataclass
class Raising:
    problem: BaseException

    def __call__(self, task: object) -> None:
        raise self.problem


def sent(problem: BaseException) -> TriedTask[Any]:
    found: TriedTask[Any] = unpacked(packed_outcome(tried(Raising(problem), None)))
    return found


@pytest.mark.parametrize(
    "problem",
    [
        ValueError("wrong"),
        UnfitBlocks(3, "missing"),
        CannotBeSent("a task", "ended"),
        SettingMistakes(()),
        MemoryError(),
        KeyError("k"),
    ],
)
def test_errors_come_back_as_what_they_are(problem: Exception) -> None:
    with pytest.raises(type(problem)) as raised:
        sent(problem).value()
    assert type(raised.value) is type(problem)
    assert str(raised.value) == str(problem)
    assert "this happened in a worker" in str(raised.value.__cause__)
    assert "test_tasks.py" in str(raised.value.__cause__)


@pytest.mark.parametrize("problem", [Stubborn("a", "b"), Changed(), SystemExit(3)])
def test_an_error_that_cannot_be_sent_is_named_without_what_it_said(problem: BaseException) -> None:
    with pytest.raises(Failed, match="a worker failed") as raised:
        sent(problem).value()
    assert type(problem).__name__ in str(raised.value)
    assert "test_tasks.py" in str(raised.value)
    assert "words of a document" not in str(raised.value)


def test_ctrl_c_is_no_outcome() -> None:
    with pytest.raises(KeyboardInterrupt):
        tried(Raising(KeyboardInterrupt()), None)


def test_what_cannot_be_sent_is_refused_by_name() -> None:
    with pytest.raises(CannotBeSent, match="the question cannot be sent to another process"):
        packed("the question", lambda: 1)
    with pytest.raises(CannotBeSent, match="the result of a task"):
        unpacked(packed_outcome(TriedTask(lambda: 1))).value()


def test_a_result_comes_back() -> None:
    assert unpacked(packed_outcome(tried(len, "four"))).value() == 4
    assert failed(ValueError()).result is None


@dataclass
class Few:
    """A crew (dispatch.Crew) of so many workers. `lose` says of each try of a task whether its worker is lost with it."""

    workers: int
    lose: Callable[[int, int], bool] = lambda task, before: False
    started: int = 0
    tried: list[int] = field(default_factory=list)
    most_held: int = 0
    fastest: Callable[[dict[str, int]], str] = (
        max  # whose task ends next: of those who have one, usually the one that began last
    )
    by_place: dict[int, list[int]] = field(default_factory=dict)  # the tasks that each worker carried out
    _held: dict[str, int] = field(default_factory=dict)
    _free: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    def free(self, wanted: int) -> Sequence[str]:
        while len(self._free) + len(self._held) < self.workers and len(self._free) < wanted:
            self.started += 1
            self._free.append(f"worker {self.started:03d}")
            self._places[self._free[-1]] = min(set(range(self.workers)) - set(self._places.values()))
        self._free.sort(key=self.place)
        return [self._free.pop(0) for _ in range(min(wanted, len(self._free)))]

    def place(self, worker: str) -> int:
        return self._places[worker]

    def give(self, worker: str, task: int) -> None:
        assert worker not in self._held
        self._held[worker] = task
        self.most_held = max(self.most_held, len(self._held))

    def events(self) -> Sequence[Event]:
        worker = self.fastest(self._held)
        task = self._held.pop(worker)
        self.tried.append(task)
        if self.lose(task, self.tried.count(task) - 1):
            del self._places[worker]
            return [Event(worker, lost="was killed by SIGKILL")]
        self.by_place.setdefault(self._places[worker], []).append(task)
        self._free.append(worker)
        return [Event(worker, tried(self.work, task))]

    @staticmethod
    def work(task: int) -> Any:
        if task == 13:
            raise ValueError("thirteen")
        return task * task


@pytest.mark.parametrize("workers", [1, 2, 3, 20])
def test_each_task_has_one_result(workers: int) -> None:
    assert sorted(carried_out(Few(workers), workers, range(12))) == [n * n for n in range(12)]


def test_no_task_starts_no_worker() -> None:
    few = Few(3)
    assert list(carried_out(few, few.workers, [])) == []
    assert few.started == 0


def test_only_as_many_workers_start_as_there_are_tasks() -> None:
    few = Few(20)
    assert len(list(carried_out(few, few.workers, range(3)))) == 3
    assert few.started == 3


def test_tasks_of_lost_workers_are_carried_out_by_others() -> None:
    few = Few(2, lose=lambda task, before: before < MOST_LOSSES - 1 and task in (0, 5, 6))
    assert sorted(carried_out(few, few.workers, range(8))) == [n * n for n in range(8)]
    assert {task: few.tried.count(task) for task in range(8)} == {n: MOST_LOSSES if n in (0, 5, 6) else 1 for n in range(8)}


def test_a_task_that_loses_every_worker_is_given_up_by_name() -> None:
    few = Few(2, lose=lambda task, before: task == 3)
    with pytest.raises(Failed, match="given up: 4 workers were lost with it, and the last one was killed by SIGKILL"):
        list(carried_out(few, few.workers, range(8)))
    assert few.tried.count(3) == MOST_LOSSES


def test_what_the_work_raises_comes_out_and_names_the_place() -> None:
    with pytest.raises(ValueError, match="thirteen") as raised:
        list(carried_out(Few(2), 2, [1, 13, 2]))
    assert "this happened in a worker" in str(raised.value.__cause__)
    assert "test_tasks.py" in str(raised.value.__cause__)


def test_results_are_taken_as_they_arrive_and_no_worker_waits_for_the_one_who_takes_them() -> None:
    few = Few(2)
    results = carried_out(few, few.workers, range(9))
    next(results)
    assert len(few.tried) == 1  # no result was gathered ahead
    assert len(few._held) == 2  # both work while the first result is looked at
    assert len(list(results)) == 8


# ---- whose tasks they are ----------------------------------------------------------------------------------------------


def in_turns(held: dict[str, int]) -> str:
    """All are equally fast: who has the first task ends first."""
    return min(held, key=lambda worker: held[worker])


def test_a_task_comes_to_the_same_worker_in_each_call() -> None:
    few = Few(3, fastest=in_turns)
    for _ in range(2):
        list(carried_out(few, 3, range(12)))
    assert few.by_place == {place: [*range(place, 12, 3)] * 2 for place in range(3)}


def test_who_replaces_a_lost_worker_has_its_tasks() -> None:
    few = Few(3, lose=lambda task, before: task == 4 and before == 0, fastest=in_turns)
    list(carried_out(few, 3, range(12)))
    assert few.started == 4
    assert {place: sorted(tasks) for place, tasks in few.by_place.items()} == {n: [*range(n, 12, 3)] for n in range(3)}


def test_a_worker_without_tasks_takes_those_of_the_slowest() -> None:
    few = Few(2, fastest=lambda held: max(held, key=lambda worker: (worker == "worker 002", worker)))
    assert sorted(carried_out(few, 2, range(8))) == [n * n for n in range(8)]
    assert few.by_place[0] == [0]
    assert sorted(few.by_place[1]) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(("workers", "tasks"), [(2, 40), (7, 200), (100, 954)])
def test_few_sums_wait_although_some_workers_are_slow(workers: int, tasks: int) -> None:
    """Tasks wait in memory once they are done, until all before them are."""
    own, draw, done = OwnTasks(tasks, workers), random.Random(0), set[int]()
    seconds = [2.0 if draw.random() < 0.2 else 1.0 for _ in range(workers)]
    working = [(seconds[place], place, own.next_for(place)) for place in range(workers)]
    most = before = 0
    while working:
        now, place, task = heapq.heappop(working)
        done.add(task)
        while before in done:
            before += 1
        most = max(most, max(done) - before)
        if len(own):
            heapq.heappush(working, (now + seconds[place] * (1 + draw.random() / 10), place, own.next_for(place)))
    assert before == tasks
    assert most <= (MOST_AHEAD + 2) * workers
