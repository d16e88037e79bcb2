"""One document whose row fails is left out, so that a party's answer is the answer of its other documents, to the last bit.

A failure of a computation that runs over many documents, memory that it lacks too, would otherwise take the rows of all of them
along: whoever sees the sum would see one document decide about a whole party. Which documents fail is found by halving.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from securetm.answers.block_sums import PartialSum, RowFailure
from securetm.contracts import Array, Memory, Terms, Unit

Answered = Callable[[Any, Memory, np.random.Generator], PartialSum]  # the sum over documents; it changes the memory


@dataclass
class SoundRows:
    """The documents of one answer, and how they are answered. `memory` and `rng` are as they were before it."""

    answered: Answered
    terms: Terms
    documents: Any
    memory: Memory
    rng: np.random.Generator
    whole: bool = True  # whether these are all documents of the answer; else they are a block of them
    _noted: dict[str, RowFailure] = field(default_factory=dict)

    def answer(self) -> PartialSum:
        """The sum over all documents whose rows do not fail. What fails without any document is raised, or with every one."""
        everyone = np.arange(len(self.documents))
        whole = self._tried(everyone, keep=True)
        if isinstance(whole, PartialSum):
            return whole
        if isinstance(self._tried(everyone[:0]), Exception):
            raise whole  # no document is the reason
        failing = self._failing(self._owners(everyone))
        if self.whole and sum(map(len, failing)) == len(everyone):
            raise whole
        others = np.setdiff1d(everyone, np.concatenate([everyone[:0], *failing]))
        rest = self._of_others(others)
        lost, failed = rest.lost + len(failing), sum(map(len, failing))
        return replace(rest, lost=lost, failed=failed, failures=tuple(self._noted.values()))

    def _of_others(self, rows: Array) -> PartialSum:
        """The sum over these documents, none of which fails alone; in two parts if they fail together."""
        whole = self._tried(rows, keep=True)
        if isinstance(whole, PartialSum):
            return whole
        owners = self._owners(rows)
        if self.terms.at_once or len(owners) < 2:
            raise whole
        one, other = (np.sort(np.concatenate(half)) for half in _halves(owners))
        return self._of_others(one).plus(self._of_others(other))

    def _failing(self, owners: Sequence[Array]) -> list[Array]:
        """The documents of each owner whose documents fail, of owners that fail together."""
        if len(owners) == 1:
            return list(owners)
        halves = [half for half in _halves(owners) if isinstance(self._tried(np.sort(np.concatenate(half))), Exception)]
        return [one for half in halves for one in self._failing(half)]

    def _tried(self, rows: Array, *, keep: bool = False) -> PartialSum | Exception:
        """The sum over these documents, or how it failed. A trial, and a sum that failed, leave nothing behind."""
        memory, before = dict(self.memory), self.rng.bit_generator.state
        some = self.documents if len(rows) == len(self.documents) else self.documents.select(rows)
        try:
            found: PartialSum | Exception = self.answered(some, memory, self.rng)
        except Exception as problem:  # noqa: BLE001 - what a document makes of a model's arithmetic, or of a user's own code
            found = problem
            self._noted.setdefault(type(problem).__name__, _noted(problem))
        if keep and isinstance(found, PartialSum):
            self.memory.clear()
            self.memory.update(memory)
        else:
            self.rng.bit_generator.state = before
        return found

    def _owners(self, rows: Array) -> list[Array]:
        """These documents by whose they are: a person's stand and fail together."""
        if self.terms.unit is not Unit.PERSON or self.documents.persons is None:
            return [rows[place : place + 1] for place in range(len(rows))]
        persons = self.documents.persons[rows]
        order = np.argsort(persons, kind="stable")
        return np.split(rows[order], np.flatnonzero(np.diff(persons[order])) + 1)


def _noted(problem: Exception) -> RowFailure:
    steps = traceback.extract_tb(problem.__traceback__)[-3:]
    where = " <- ".join(f"{step.filename}:{step.lineno}" for step in reversed(steps))
    return RowFailure(type(problem).__name__, str(problem), where)


def _halves(owners: Sequence[Array]) -> Iterator[Sequence[Array]]:
    middle = len(owners) // 2
    return iter((owners[:middle], owners[middle:]))
