"""The pool of real processes: what it carries out, what it survives, and that none of its processes outlives it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from securetm.engines.local_pool import LocalPool
from securetm.engines.tasks import CannotBeSent
from securetm.errors import Failed

from ..quick_part import quick
from .worked import Squares, Unloadable, Waiting, killed, threads_here


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalPool]:
    pool = LocalPool(2)
    yield pool
    pool.close()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def pids(pool: LocalPool) -> set[int]:
    return {worker.process.pid for worker in pool._running.values()}


def kill_at(gate: Path, times: int) -> tuple[Thread, list[int]]:
    """Kills whoever comes to the gate, so often."""
    found: list[int] = []

    def kill() -> None:
        while len(found) < times:
            for line in gate.read_text().splitlines():
                found.append(int(line))
                os.kill(found[-1], signal.SIGKILL)

    thread = Thread(target=kill)
    thread.start()
    return thread, found


@pytest.mark.slow
def test_a_task_comes_to_the_same_process_in_each_call_also_when_another_is_lost() -> None:
    pool = LocalPool(2)
    first, second = sorted(pool.map(Squares(), range(2)))
    assert sorted(pool.map(Squares(), range(2))) == [first, second]
    os.kill(first[1], signal.SIGKILL)
    again = dict(pool.map(Squares(), range(2)))
    assert again[1] == second[1]
    assert again[0] != first[1]
    pool.close()


def test_making_a_pool_starts_no_process_and_closing_it_ends_all() -> None:
    pool = LocalPool(2)
    assert not pids(pool)
    list(pool.map(Squares(), range(3)))
    running = [worker.process for worker in pool._running.values()]
    pool.close()
    assert all(process.returncode is not None for process in running)
    assert [square for square, _ in pool.map(Squares(), [5])] == [25]  # it can be used again
    pool.close()


def test_work_that_cannot_be_sent_is_refused_by_name(shared: LocalPool) -> None:
    with pytest.raises(CannotBeSent, match="the question"):
        list(shared.map(lambda task: task, [1]))
    with pytest.raises(ImportError, match="not here"):
        list(shared.map(Unloadable(), [1]))  # type: ignore[arg-type]


@pytest.mark.slow
def test_killed_twice_in_a_call_nothing_is_lost(gate: Path) -> None:
    """In the middle of two tasks, whose other tries then send what came of them."""
    pool, long = LocalPool(2), 3_000_000
    thread, found = kill_at(gate, 2)
    done: Any = list(pool.map(Waiting(gate, (2, 5), long), range(8)))
    thread.join()
    assert sorted(task for task, _ in done) == list(range(8))
    assert all(np.array_equal(array, np.full(long, task)) for task, array in done)
    assert len(set(found)) == 2
    assert not set(found) & pids(pool)
    pool.close()


@pytest.mark.slow
def test_killed_before_the_first_task_and_between_calls() -> None:
    pool = LocalPool(2)
    list(pool.map(Squares(), range(4)))
    for _ in range(2):  # a worker that is gone before a call begins costs its task no try
        for pid in pids(pool):
            os.kill(pid, signal.SIGKILL)
        assert sorted(square for square, _ in pool.map(Squares(), range(4))) == [0, 1, 4, 9]
    pool.close()


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_given_up(shared: LocalPool) -> None:
    with pytest.raises(Failed, match="4 workers were lost with it, and the last one was killed by SIGKILL"):
        list(shared.map(killed, [1]))
    assert len(list(shared.map(Squares(), range(3)))) == 3


def test_a_worker_computes_with_one_thread_unless_asked(shared: LocalPool) -> None:
    assert list(shared.map(threads_here, [0])) == [{"numba": 1, "blas": 1}]


PARTY = """
import sys
from pathlib import Path
from securetm.engines.local_pool import LocalPool
from tests.engines.worked import Waiting
list(LocalPool(2).map(Waiting(Path(sys.argv[1]), (0, 1)), range(4)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", quick([signal.SIGKILL, signal.SIGINT], signal.SIGINT))
def test_no_worker_outlives_its_party_even_in_the_middle_of_a_task(gate: Path, way: signal.Signals) -> None:
    party = subprocess.Popen([sys.executable, "-c", PARTY, str(gate)], stderr=subprocess.DEVNULL)
    workers: list[int] = []
    while len(workers) < 2:
        workers += [int(line) for line in gate.read_text().splitlines()]
    ends = [os.pidfd_open(pid) for pid in workers]
    party.send_signal(way)
    party.wait(60)
    for end in ends:
        assert _has_ended(end, 60)
        os.close(end)


def _has_ended(process: int, seconds: float) -> bool:
    """Whether the process of a descriptor ends in that time: the descriptor is then readable."""
    return bool(select.select([process], [], [], seconds)[0])
