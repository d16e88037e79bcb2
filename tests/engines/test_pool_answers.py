"""The law of shards and workers with real processes: however many there are of both, an answer has the same bytes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from securetm.answers.block_answers import InThisProcess
from securetm.corpus.corpus import Corpus
from securetm.engines.local_pool import LocalPool

from ..models.small_models import OURS
from .stored_parties import SHARDS, stored, trained


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Corpus]:
    folder = tmp_path_factory.mktemp("stored")
    return {shards: stored(folder, shards) for shards in SHARDS}


class Struck(LocalPool):
    """A pool of which a process is killed after each of the first two results of a call."""

    def map(self, work: Any, tasks: Any) -> Iterator[Any]:
        for number, result in enumerate(super().map(work, tasks)):
            if number < 2:
                running = (worker.process for worker in self._running.values() if worker.busy)
                process = next(process for process in running if process.returncode is None)
                process.kill()
                process.wait()
            yield result


@pytest.mark.slow  # tests/engines/test_local_pool.py loses two workers in one call, too
@pytest.mark.parametrize("name", OURS)
def test_killed_twice_in_every_round(name: str, parties: Mapping[int, Corpus]) -> None:
    expected, pool = trained(name, parties[1]), Struck(2)
    assert trained(name, parties[7], pool, f"{name} struck") == expected
    assert pool._started in (0, 2 + 2 * len(expected.answers))  # 0: its question needs all documents at once
    pool.close()


def test_nothing_of_the_corpus_is_pickled(parties: Mapping[int, Corpus]) -> None:
    sent: list[int] = []

    class Weighed(InThisProcess):
        def map(self, work: Any, tasks: Any) -> Iterator[Any]:
            sent.extend(len(pickle.dumps(task)) for task in tasks)
            return super().map(work, tasks)

    trained("lda", parties[7], Weighed(), "weighed")
    assert sent
    assert max(sent) < 1500
