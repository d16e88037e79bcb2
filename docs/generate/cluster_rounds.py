"""What 10^9 documents cost over many workers: the committed figures of `bench scale`, put into simulated rounds.

Measured are seconds a document, bytes and additions. Assumed are the network, the disks, and how many workers are slow or lost.
A round of one party's answer is simulated event by event. Its tasks and sums are those that `block_answers.py` makes of so many
blocks; workers are one core each, in machines of their own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np

from lab.bench.scale_cases import BUILD, CHOICE, DISK, LARGE, PARTS, ROUND, TEXT
from lab.measuring import committed
from securetm.answers.block_answers import tasks_of
from securetm.answers.block_sums import JoinedBlocks, Node, PartialSum
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


# ---- with the committed figures ------------------------------------------------------------------------------------------

DOCUMENTS, WORKERS, ROUNDS = 10**9, 100, 100
LINK, DISK_RATE = 1.25e9, 0.5e9  # bytes a second: assumed
SIMULATED = 20  # rounds, each with slow and lost workers of its own
SWEPT = (10, 30, 100, 300, 1_000, 3_000)  # workers
CALM = Cluster(WORKERS, slow=0.0, lost_an_hour=0.0)
HUGE_VALUES = 1_000 * 100_000  # topics x words


@dataclass(frozen=True)
class Setting:
    """A model that the rounds are simulated for."""

    topics: int
    words: int
    rates: Rates
    measured: bool = True  # whether the seconds of a document were

    def __str__(self) -> str:
        return f"{self.topics:,} topics, {self.words:,} words"


@cache
def measured_rows() -> tuple[Mapping[str, Any], ...]:
    """All rows of the committed result."""
    return tuple(committed("bench-scale")["measured"])


def row_of(what: str, model: str = "", documents: int | None = None) -> Mapping[str, Any]:
    """The row of this case on disk with one thread; of the most documents, unless a number is given."""
    same = {"what": what, "model": model, "place": DISK, "threads": 1}
    found = [row for row in measured_rows() if same.items() <= row.items() and documents in (None, row["documents"])]
    return max(found, key=lambda row: int(row["documents"]))


@cache
def settings() -> tuple[Setting, ...]:
    """LDA with few topics and words, with more, and with very many, whose seconds are at least those of the second."""
    small, large = row_of(PARTS, "lda"), row_of(LARGE, "lda")
    first = _rates(small, row_of(ROUND, "lda"))
    second = _rates(large, large)
    times = HUGE_VALUES / large["values"]
    grown = {name: getattr(second, name) * times for name in ("add_seconds", "update_seconds")}
    sent = {name: int(getattr(second, name) * times) for name in ("question_bytes", "sum_bytes")}
    huge = replace(second, **grown, **sent)
    return Setting(50, 2_000, first), Setting(200, 20_000, second), Setting(1_000, 100_000, huge, measured=False)


def _rates(parts: Mapping[str, Any], answered: Mapping[str, Any]) -> Rates:
    return Rates(
        document_seconds=answered["seconds"] / answered["documents"],
        document_bytes=round((parts["stored_bytes"] + 2 * parts["kept_bytes"]) / parts["documents"]),
        question_bytes=parts["question_bytes"],
        sum_bytes=parts["sum_bytes"],
        add_seconds=parts["add_seconds"],
        update_seconds=parts["update"],
        link=LINK,
        disk=DISK_RATE,
    )


@cache
def simulated(setting: Setting, cluster: Cluster) -> tuple[SimulatedRound, ...]:
    """Rounds of 10^9 documents."""
    return tuple(rounds(DOCUMENTS, cluster, setting.rates, SIMULATED if cluster.lost_an_hour else 1))


def median(found: tuple[SimulatedRound, ...], figure: str) -> float:
    """The middle of a figure of these rounds."""
    return float(np.median([getattr(one, figure) for one in found]))


def curve(setting: Setting) -> Iterator[tuple[int, float]]:
    """Workers, and seconds of a round with so many of them when nothing goes wrong."""
    for workers in SWEPT:
        yield workers, median(simulated(setting, replace(CALM, workers=workers)), "seconds")


def best_workers(setting: Setting) -> int:
    """How many of the swept numbers of workers are the fastest."""
    workers: int = min(curve(setting), key=lambda point: point[1])[0]
    return workers


# ---- what does not depend on workers ------------------------------------------------------------------------------------


def build_hours() -> float:
    """Of building the corpus on disk from texts, which one process does."""
    row = row_of(TEXT)
    return float(row["seconds"]) / int(row["documents"]) * DOCUMENTS / 3600


def driver_bytes() -> float:
    """Memory for choosing the documents that are held out, by how it grows from the least to the most documents measured."""
    rows = sorted((row for row in measured_rows() if row.get("what") == CHOICE), key=lambda row: int(row["documents"]))
    least, most = rows[0], rows[-1]
    grown, documents = float(most["peak_mib"] - least["peak_mib"]), int(most["documents"] - least["documents"])
    return grown * 2**20 / documents * DOCUMENTS


def stored_bytes() -> float:
    """Of the corpus on disk."""
    row = row_of(BUILD)
    return float(row["bytes"]) / int(row["documents"]) * DOCUMENTS


def kept_bytes() -> float:
    """Of what the party remembers between rounds."""
    row = row_of(PARTS, "lda")
    return float(row["kept_bytes"]) / int(row["documents"]) * DOCUMENTS


def epoch_hours(batch: int) -> float:
    """Of one epoch of mini-batches: a batch is one process's."""
    return float(row_of(ROUND, "prodlda")["seconds"]) * DOCUMENTS / batch / 3600
