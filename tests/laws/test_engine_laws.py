"""The engines of the house pass the laws, and each law catches the fault it is there for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import factorial
from typing import Any

import pytest

from securetm.answers.block_answers import IN_PROCESS, BlockQuestion
from securetm.contracts import Engine
from securetm.engines.local_pool import LocalPool
from securetm.models.lda.lda import LDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.testing.engine_laws import EngineLaws


class TestInProcess(EngineLaws):
    @pytest.fixture
    def engine(self) -> Engine:
        return IN_PROCESS


class TestLocalPool(EngineLaws):
    @pytest.fixture(scope="class")
    def engine(self) -> Iterator[Engine]:
        pool = LocalPool(2)
        yield pool
        pool.close()

    @pytest.mark.slow  # each process loads what the models need
    @pytest.mark.parametrize("model", [LDA(n_topics=3), ProdLDA(n_topics=3, hidden=8)])
    def test_an_answer_has_the_bytes_of_this_process(self, engine: Engine, model: LDA | ProdLDA) -> None:
        super().test_an_answer_has_the_bytes_of_this_process(engine, model)


# ---- mutants -----------------------------------------------------------------------------------------------------------


@dataclass
class Mutant(Engine):
    """An engine in this process, to be given one fault."""

    workers: int = 2
    closed: bool = False
    left: list[Any] = field(default_factory=list)

    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        return map(work, tasks)

    def close(self) -> None:
        self.closed = True


class Forgets(Mutant):
    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        return map(work, tasks[: max(1, len(tasks) - 1)])


class Repeats(Mutant):
    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        return map(work, [*tasks, *tasks[:1]])


@dataclass
class Nobody(Mutant):
    workers: int = 0


class Disguises(Mutant):
    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        try:
            yield from map(work, tasks)
        except Exception as problem:
            raise RuntimeError(str(problem)) from problem


class LeavesSome(Mutant):
    """Gives the next call what the last one did not take."""

    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        self.left += [result for task in tasks if (result := work(task)) is not None]
        while self.left:
            yield self.left.pop(0)


class ClosedForGood(Mutant):
    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        assert not self.closed
        return map(work, tasks)


class Shortens(Mutant):
    """Clips rows that nobody asked to clip."""

    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        return map(replace(work, radius=0.5) if isinstance(work, BlockQuestion) else work, tasks)


LAWS = EngineLaws()
CAUGHT: dict[type[Mutant], Callable[[Engine], None]] = {
    Forgets: lambda engine: LAWS.test_each_task_has_one_result(engine, 40),
    Repeats: lambda engine: LAWS.test_each_task_has_one_result(engine, 40),
    Nobody: LAWS.test_it_says_how_many_tasks_it_carries_out_at_once,
    Disguises: lambda engine: LAWS.test_an_error_comes_back_as_what_it_is_and_the_next_call_is_carried_out(
        engine, factorial, [3, -1], -1
    ),
    LeavesSome: LAWS.test_a_call_that_is_given_up_leaves_nothing_to_the_next,
    ClosedForGood: LAWS.test_closed_it_can_be_closed_again_and_asked_again,
    Shortens: lambda engine: LAWS.test_an_answer_has_the_bytes_of_this_process(engine, LDA(n_topics=3)),
}


@pytest.mark.parametrize("mutant", CAUGHT)
def test_each_law_catches_its_fault(mutant: type[Mutant]) -> None:
    CAUGHT[mutant](Mutant())  # without the fault it passes
    with pytest.raises((AssertionError, RuntimeError)):
        CAUGHT[mutant](mutant())
