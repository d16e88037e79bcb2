"""The laws of every engine: each task has one result, errors come back as what they are, and no answer changes by a byte.

Subclass `EngineLaws` and give `engine`, which is asked by every law and closed by whoever made it. What an engine survives, a
killed worker for one, is for its own tests: a law cannot kill what it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass, replace
from itertools import islice
from math import factorial  # work that imports nothing in a worker
from typing import Any

import numpy as np
import pytest

from securetm.answers.block_answers import IN_PROCESS
from securetm.answers.route import Route
from securetm.contracts import Cohort, Engine, Memory, Query, RoundContext
from securetm.engines import ENGINES
from securetm.entropy import OperatingSystem
from securetm.errors import NotFound
from securetm.models.lda.lda import LDA
from securetm.models.neural.prodlda import ProdLDA
from securetm.testing.few_documents import EmptyStore, in_small_blocks, some_documents

FAILING = [(factorial, [3, -2, 4, 5], -2), (ENGINES.find, ["pool", "polo"], "polo")]  # work, tasks, and the one that fails


class EngineLaws:
    """Laws of one engine."""

    @pytest.fixture
    def engine(self) -> Engine:
        raise NotImplementedError("a subclass gives the engine")

    @pytest.mark.parametrize("tasks", [0, 1, 2, 40])
    def test_each_task_has_one_result(self, engine: Engine, tasks: int) -> None:
        assert sorted(engine.map(factorial, range(tasks))) == sorted(map(factorial, range(tasks)))

    def test_it_says_how_many_tasks_it_carries_out_at_once(self, engine: Engine) -> None:
        assert engine.workers >= 1
        assert is_dataclass(engine)  # its fields are the settings in `[engine]`

    @pytest.mark.parametrize(("work", "tasks", "wrong"), FAILING)
    def test_an_error_comes_back_as_what_it_is_and_the_next_call_is_carried_out(
        self, engine: Engine, work: Callable[[Any], Any], tasks: list[Any], wrong: Any
    ) -> None:
        with pytest.raises((ValueError, NotFound)) as here:
            work(wrong)
        with pytest.raises(type(here.value)) as raised:
            list(engine.map(work, tasks))
        assert (type(raised.value), str(raised.value)) == (type(here.value), str(here.value))
        assert sorted(engine.map(factorial, range(4))) == [1, 1, 2, 6]

    def test_a_call_that_is_given_up_leaves_nothing_to_the_next(self, engine: Engine) -> None:
        given_up = engine.map(factorial, range(10, 30))
        assert len(list(islice(given_up, 2))) == 2
        del given_up
        assert sorted(engine.map(factorial, range(4))) == [1, 1, 2, 6]

    def test_closed_it_can_be_closed_again_and_asked_again(self, engine: Engine) -> None:
        assert list(engine.map(factorial, [3])) == [6]
        engine.close()
        engine.close()
        assert list(engine.map(factorial, [4])) == [24]

    @pytest.mark.parametrize("model", [LDA(n_topics=3), ProdLDA(n_topics=3, hidden=8)])
    def test_an_answer_has_the_bytes_of_this_process(self, engine: Engine, model: LDA | ProdLDA) -> None:
        query = model.query(model.start(some_documents().vocabulary, np.random.default_rng(0)))
        assert answered_by(engine, query) == answered_by(IN_PROCESS, query)


def answered_by(engine: Engine, query: Query) -> list[bytes]:
    """The answers of two rounds, and what is remembered."""
    cohort, memory, found = Cohort(b"", 0, ("party",)), Memory(), list[bytes]()
    context = RoundContext(cohort, OperatingSystem(), EmptyStore())
    route = Route.through(replace(query.terms, batch=0), (), cohort)  # a batch would be one block
    for number in range(2):
        rng = np.random.default_rng(number)
        answer = route.answer(query, in_small_blocks(some_documents()), context, memory, rng, engine)
        found += [block.tobytes() for block in answer.vector.values()]
    return [*found, *(memory[name].tobytes() for name in sorted(memory))]
