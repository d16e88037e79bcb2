"""Ray on this machine gives the same bytes as this process, whatever is lost, and lets nobody else in. One cluster for all."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.synthetic_documents import SyntheticStream, write_stream
from securetm.answers.block_answers import IN_PROCESS, files_in
from securetm.answers.route import Route
from securetm.contracts import Cohort, Engine, Keeping, Mechanism, Memory, Query, RoundContext
from securetm.corpus.corpus import Corpus
from securetm.engines.listening import family, heard_elsewhere, listened
from securetm.engines.ray_engine import RayEngine
from securetm.entropy import OperatingSystem, Seeded
from securetm.models.lda.lda import LDA
from securetm.testing.few_documents import OnShards

from ..quick_part import quick
from ..test_answers import CASES, COHORT, Kept, corpus
from .small_work import SECRET, environment, process_of, telling

if find_spec("ray") is None:  # nobody imports it before it is needed
    pytest.skip("could not import 'ray'", allow_module_level=True)
__all__ = ["corpus"]


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    made = RayEngine(2)
    yield made
    made.close()


def driver(engine: RayEngine) -> Any:
    list(engine.map(len, ["begin"]))
    return engine.driver  # type: ignore[union-attr]


# ---- the same bytes --------------------------------------------------------------------------------------------------


def answers(query: Query, mechanisms: Sequence[Mechanism], documents: Any, engine: Engine) -> list[Any]:
    """Two rounds: the answers, and what is remembered."""
    entropy, memory, store = Seeded(bytes(32), unsafe=True), Memory(), Kept()
    route, rng = Route.through(query.terms, mechanisms, COHORT), np.random.default_rng(0)
    found: list[Any] = []
    for number in range(2):
        context = RoundContext(replace(COHORT, number=number), entropy, store)  # type: ignore[arg-type]
        clipped = route.answer(query, documents, context, memory, rng, engine)
        found.append({name: np.asarray(block).tobytes() for name, block in clipped.vector.items()})
    return [*found, {name: array.tobytes() for name, array in memory.items()}]


@pytest.mark.parametrize("name", quick(["lda per person", "gradients of a sample", "list of words"], "gradients of a sample"))
def test_the_bytes_are_those_of_this_process(name: str, corpus: Any, engine: RayEngine) -> None:
    query, mechanisms = CASES[name]
    here = answers(query, mechanisms, OnShards(corpus, 1), IN_PROCESS)
    assert answers(query, mechanisms, OnShards(corpus, 7), engine) == here


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Documents on disk, in five blocks."""
    folder = tmp_path_factory.mktemp("corpus") / "documents"
    write_stream(SyntheticStream(500, 60, 4, 20, block_documents=100), folder)
    return Corpus.open(folder).in_blocks()


def on_disk(documents: Corpus, engine: Engine, folder: str, interrupted: bool = False) -> list[bytes]:
    """Three rounds of LDA whose memory is beside the shards; in the second, two workers are killed."""
    model, memory, found = LDA(n_topics=4), Memory(), []
    state = model.start(documents.vocabulary, np.random.default_rng(0))
    cohort = Cohort(b"", 0, ("party",))
    for number in range(3):
        query = model.query(state)
        route = Route.through(query.terms, (), cohort)
        keeping = Keeping(folder, f"{number:08d}", files_in(memory))
        context = RoundContext(cohort, OperatingSystem(), Kept())  # type: ignore[arg-type]
        used: Engine = Killing(engine) if interrupted and number == 1 else engine  # type: ignore[arg-type]
        clipped = route.answer(query, documents, context, memory, np.random.default_rng(number), used, keeping)
        found.append(b"".join(np.asarray(block).tobytes() for block in clipped.vector.values()))
    return found


@dataclass
class Killing(Engine):
    """The engine, two of whose workers are killed with -9 in each call, the first time they have a task."""

    engine: RayEngine
    killed: int = 0

    @property
    def workers(self) -> int:
        return self.engine.workers

    def map(self, work: Any, tasks: Any) -> Iterator[Any]:
        before = actors(self.engine)
        for number, result in enumerate(self.engine.map(work, tasks)):
            if number < 2:
                os.kill(before[number], signal.SIGKILL)
                self.killed += 1
            yield result
        assert self.killed == 2

    def close(self) -> None:
        pass


def actors(engine: RayEngine) -> list[int]:
    """The processes of the actors, once all of them have begun: until then the others take their tasks."""
    found: set[int] = set()
    while len(found) < engine.workers:
        found = set(engine.map(process_of, range(engine.workers)))
    return sorted(found)


@pytest.mark.slow
def test_documents_on_disk_and_workers_that_are_killed(stored: Corpus, engine: RayEngine) -> None:
    here = on_disk(stored, IN_PROCESS, "here")
    assert on_disk(stored, engine, "ray") == here
    assert on_disk(stored, engine, "killed", interrupted=True) == here


# ---- nobody else -----------------------------------------------------------------------------------------------------


def test_ray_listens_on_this_machine_alone(engine: RayEngine) -> None:
    ours = family(driver(engine).number)
    heard = [address for process in ours for address in listened(process)]
    assert len(ours) > 5
    assert len(heard) > 5
    assert heard_elsewhere(driver(engine).number) == ()


def test_no_log_holds_what_a_part_prints_or_raises(engine: RayEngine) -> None:
    with pytest.raises(ValueError, match=SECRET):
        list(engine.map(telling, range(3)))
    folder = driver(engine).folder.path
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any("worker" in path.name for path in files)
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.slow
def test_ray_sends_no_usage_statistics_and_no_setting_of_the_user_reaches_it(engine: RayEngine) -> None:
    found = dict(next(engine.map(environment, [0])))
    assert found["RAY_USAGE_STATS_ENABLED"] == "0"
    assert found["RAY_AUTH_MODE"] == "token"
    assert found["OMP_NUM_THREADS"] == "1"


@pytest.mark.slow
def test_closing_ends_every_process_and_deletes_the_folder(engine: RayEngine) -> None:
    """Last in this file: the cluster is gone after it."""
    started = driver(engine)
    ours = family(started.number)
    engine.close()
    assert not started.folder.path.exists()
    assert [process for process in ours if Path(f"/proc/{process}/fd/0").exists()] == []
