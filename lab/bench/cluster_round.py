"""A round of one party's answer on many workers, simulated event by event. Every rate is given; it measures nothing.

Tasks and sums are those that `block_answers.py` makes of so many blocks. Workers are one core each, in machines of their own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter

import numpy as np

from securetm.block_answers import tasks_of
from securetm.block_sums import JoinedBlocks, Node, PartialSum
from securetm.contracts import BLOCK_DOCUMENTS
from securetm.engines.tasks import OwnTasks

SHARD_BLOCKS = 16  # blocks in a file
_SUM = PartialSum(np.zeros(1))


@dataclass(frozen=True)
class Rates:
    """What a piece of work takes: measured, but for the network and the disks."""

    document_seconds: float  # of a worker, for one document, read from memory
    document_bytes: int  # on disk, with what the party remembers of it, which is read and written
    question_bytes: int
    sum_bytes: int
    add_seconds: float  # for two sums, at the driver
    update_seconds: float
    link: float  # bytes a second, in and out of each machine
    disk: float  # bytes a second, of each worker


@dataclass(frozen=True)
class Cluster:
    """How many workers there are, and what goes wrong."""

    workers: int
    slow: float = 0.05  # the share of workers that take `slowness` times as long
    slowness: float = 2.0
    lost_an_hour: float = 0.1  # of all workers
    restart: float = 60.0  # seconds until a lost worker is back


@dataclass(frozen=True)
class TaskSize:
    """How many documents a task has, and which sums it sends back: level and place of each in the tree."""

    documents: int
    sums: tuple[tuple[int, int], ...]


@dataclass
class SimulatedRound:
    """What a round took."""

    seconds: float = 0.0
    broadcast: float = 0.0  # until the last worker had the question
    workers_ended: float = 0.0  # the last task
    sent: float = 0.0  # bytes of all questions
    received: float = 0.0  # bytes of all sums
    lost: int = 0
    arrived: list[TaskSize] = field(default_factory=list, repr=False)  # tasks, in the order in which their sums came


@dataclass
class _Block:
    number: int
    shard: str


@cache
def task_sizes(documents: int, workers: int) -> tuple[TaskSize, ...]:
    """The tasks of an answer, as an engine with so many workers gets them."""
    count = -(-documents // BLOCK_DOCUMENTS)
    blocks = [_Block(number, str(number // SHARD_BLOCKS)) for number in range(count)]
    found = []
    for task in tasks_of(blocks, {}, workers):  # type: ignore[arg-type]  # it asks blocks for their number and shard only
        joined = JoinedBlocks(count)
        for placed in task.blocks:
            joined.add(Node(0, placed.place, _SUM))
        ends = min((task.blocks[-1].place + 1) * BLOCK_DOCUMENTS, documents)
        sums = tuple((node.level, node.index) for node in joined.nodes())
        found.append(TaskSize(ends - task.blocks[0].place * BLOCK_DOCUMENTS, sums))
    return tuple(found)


@dataclass
class RoundOnCluster:
    """One round of so many documents."""

    documents: int
    cluster: Cluster
    rates: Rates
    rng: np.random.Generator
    told: SimulatedRound = field(default_factory=SimulatedRound)
    _driver_free: float = 0.0
    _slow: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Draws which workers are slow in this round."""
        self._slow = np.where(self.rng.random(self.cluster.workers) < self.cluster.slow, self.cluster.slowness, 1.0)

    def run(self) -> SimulatedRound:
        """The round: the question goes out, tasks are handed out as engines do, and the driver adds sums as they arrive."""
        free = list(self._told())
        heapq.heapify(free)
        tasks = task_sizes(self.documents, self.cluster.workers)
        waiting = OwnTasks(len(tasks), self.cluster.workers)
        arrivals: list[tuple[float, TaskSize]] = []
        while len(waiting):
            begun, worker = heapq.heappop(free)
            number = waiting.next_for(worker)
            task = tasks[number]
            took = self._seconds_of(task) * self._slow[worker]
            lost_after = self.rng.exponential(3600.0 / self.cluster.lost_an_hour) if self.cluster.lost_an_hour else np.inf
            if lost_after < took:  # another worker carries it out from the beginning
                self.told.lost += 1
                waiting.again(number)
                again = begun + lost_after + self.cluster.restart + self.rates.question_bytes / self.rates.link
                self.told.sent += self.rates.question_bytes
                heapq.heappush(free, (again, worker))
                continue
            sent = begun + took + len(task.sums) * self.rates.sum_bytes / self.rates.link
            arrivals.append((sent, task))
            heapq.heappush(free, (sent, worker))
        self._add(sorted(arrivals, key=itemgetter(0)))
        self.told.seconds = self._driver_free + self.rates.update_seconds
        return self.told

    def _told(self) -> Iterator[tuple[float, int]]:
        """When each worker has the question: the driver sends it to one after the other."""
        for worker in range(self.cluster.workers):
            self.told.sent += self.rates.question_bytes
            self.told.broadcast = (worker + 1) * self.rates.question_bytes / self.rates.link
            yield self.told.broadcast, worker

    def _seconds_of(self, task: TaskSize) -> float:
        read = self.rates.document_bytes / self.rates.disk
        return task.documents * (self.rates.document_seconds + read)

    def _add(self, arrivals: list[tuple[float, TaskSize]]) -> None:
        """The driver takes sums in one after the other, over one link, and adds them."""
        each = self.rates.sum_bytes / self.rates.link + self.rates.add_seconds
        for at, task in arrivals:
            self.told.arrived.append(task)
            self.told.received += len(task.sums) * self.rates.sum_bytes
            self.told.workers_ended = max(self.told.workers_ended, at)
            self._driver_free = max(self._driver_free + len(task.sums) * each, at + self.rates.add_seconds)


def most_waiting(documents: int, found: SimulatedRound) -> int:
    """The most sums that waited for their neighbours at the driver. It refuses a round that left a document out."""
    joined, most = JoinedBlocks(-(-documents // BLOCK_DOCUMENTS)), 0
    for task in found.arrived:
        for level, index in task.sums:
            joined.add(Node(level, index, _SUM))
        most = max(most, len(joined.nodes()))
    joined.whole()
    return most


def rounds(documents: int, cluster: Cluster, rates: Rates, times: int, seed: int = 0) -> list[SimulatedRound]:
    """So many rounds, each with slow and lost workers of its own."""
    rngs = (np.random.default_rng([seed, number]) for number in range(times))
    return [RoundOnCluster(documents, cluster, rates, rng).run() for rng in rngs]
