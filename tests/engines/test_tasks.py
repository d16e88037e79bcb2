"""Tasks between processes, and handing them to a crew whose workers are lost whenever the test says so."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from typing import Any

import pytest

from securetm.engines.tasks import (
    MOST_AHEAD,
    CannotBeSent,
    OwnTasks,
    TriedTask,
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


def test_what_cannot_be_sent_is_refused_by_name() -> None:
    with pytest.raises(CannotBeSent, match="the question cannot be sent to another process"):
        packed("the question", lambda: 1)
    with pytest.raises(CannotBeSent, match="the result of a task"):
        unpacked(packed_outcome(TriedTask(lambda: 1))).value()


# ---- whose tasks they are ----------------------------------------------------------------------------------------------


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
