"""Simulated rounds: all documents are answered once, losses included, and each part of a round takes what its rate says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lab.bench.cluster import Cluster, Rates, median, most_waiting, rounds, task_sizes
from securetm.contracts import BLOCK_DOCUMENTS

DOCUMENTS = 200 * BLOCK_DOCUMENTS
CALM = Cluster(4, slow=0.0, lost_an_hour=0.0)
ONLY_WORK = Rates(1e-5, 0, 0, 0, 0.0, 0.0, 1e9, 1e9)


@pytest.mark.parametrize("workers", [1, 4, 60, 500])
def test_tasks_hold_every_document_once(workers: int) -> None:
    tasks = task_sizes(DOCUMENTS, workers)
    assert sum(task.documents for task in tasks) == DOCUMENTS
    assert len(tasks) >= min(workers, 200)


def test_without_anything_else_a_round_takes_what_the_busiest_worker_does() -> None:
    (found,) = rounds(DOCUMENTS, CALM, ONLY_WORK, 1)
    loads = np.zeros(4)
    for task in task_sizes(DOCUMENTS, 4):
        loads[loads.argmin()] += task.documents * 1e-5
    assert found.seconds == pytest.approx(loads.max())
    assert found.lost == 0


def test_disk_network_additions_and_update_take_what_their_rates_say() -> None:
    (bare,) = rounds(DOCUMENTS, CALM, ONLY_WORK, 1)
    (disk,) = rounds(DOCUMENTS, CALM, replace(ONLY_WORK, document_bytes=10_000), 1)
    assert disk.seconds == pytest.approx(2 * bare.seconds)  # 10 kB at a gigabyte a second are 10 microseconds more
    (asked,) = rounds(DOCUMENTS, CALM, replace(ONLY_WORK, question_bytes=10**9), 1)
    assert (asked.broadcast, asked.sent) == (4.0, 4e9)  # to one worker after the other
    tasks = len(task_sizes(DOCUMENTS, 4))
    (answered,) = rounds(DOCUMENTS, CALM, replace(ONLY_WORK, sum_bytes=10**12), 1)
    assert answered.received == tasks * 1e12
    assert answered.seconds >= tasks * 1e12 / 1e9  # all of it comes through the driver's network
    (added,) = rounds(DOCUMENTS, CALM, replace(ONLY_WORK, add_seconds=1e3, update_seconds=5.0), 1)
    assert added.seconds >= tasks * 1e3 + 5.0


def test_slow_and_lost_workers_cost_time_and_no_document() -> None:
    calm = rounds(DOCUMENTS, CALM, ONLY_WORK, 1)
    slow = rounds(DOCUMENTS, replace(CALM, slow=0.5, slowness=5.0), ONLY_WORK, 20)
    assert median(tuple(slow), "seconds") > median(tuple(calm), "seconds")
    often = replace(CALM, lost_an_hour=60.0, restart=30.0)  # each of them once a minute
    lost = rounds(DOCUMENTS, often, ONLY_WORK, 20)
    assert sum(one.lost for one in lost) > 5
    assert median(tuple(lost), "seconds") > median(tuple(calm), "seconds")
    assert all(1 <= most_waiting(DOCUMENTS, one) <= 16 for one in lost)  # which adds up all blocks
    assert rounds(DOCUMENTS, often, ONLY_WORK, 20) == lost  # the same draws
