"""How work, tasks and what came of them travel between the process of a party and its workers. It starts no process.

What travels was made by the same program of the same user a moment ago, so it is pickled; nothing from outside ever is.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from securetm.engines.engine_errors import CannotBeSent, InWorker, WorkerFailed

T = TypeVar("T")
R = TypeVar("R")
_PLACES = 3  # in the code, of an exception


@dataclass(frozen=True)
class TriedTask(Generic[R]):
    """What came of a task: its result, or what the work raised."""

    result: R | None = None
    error: Exception | None = None
    where: str = ""  # the last places in the code that the error came through

    def value(self) -> R:
        """The result; raises what the work raised."""
        if self.error is not None:
            raise self.error from InWorker(self.where)
        return cast(R, self.result)


def packed(what: str, thing: object) -> bytes:
    """The thing as bytes, or a refusal that calls it `what`."""
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception as problem:
        raise CannotBeSent(what, f"{type(problem).__name__}: {problem}") from problem


def unpacked(content: bytes | memoryview) -> Any:
    """What `packed` made bytes of, in another process of the same program."""
    return pickle.loads(content)  # noqa: S301 - from a process that this one started, or from the one that started it


def tried(work: Callable[[T], R], task: T) -> TriedTask[R]:
    """Carries out one task. Run by a worker."""
    try:
        return TriedTask(work(task))
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - the party decides what becomes of it
        return failed(problem)


def packed_outcome(outcome: TriedTask[R]) -> bytes:
    """The outcome as bytes; the refusal in its place, where its result is not picklable."""
    try:
        return packed("the result of a task", outcome)
    except CannotBeSent as problem:
        return packed("an error", failed(problem))


def failed(problem: BaseException) -> TriedTask[Any]:
    """The outcome of a task that raised this: the same exception if it can be sent, or one that names it."""
    where = " <- ".join(f"{at.filename}:{at.lineno}" for at in reversed(traceback.extract_tb(problem.__traceback__)[-_PLACES:]))
    if isinstance(problem, Exception) and _can_be_sent(problem):
        return TriedTask(error=problem, where=where)
    return TriedTask(error=WorkerFailed(type(problem).__qualname__, where), where=where)


def _can_be_sent(problem: Exception) -> bool:
    """Whether another process gets the same exception: many classes cannot be made again from what they say."""
    try:
        again = unpacked(packed("an error", problem))
    except Exception:  # noqa: BLE001 - whatever a stranger's class raises when it is made again
        return False
    return type(again) is type(problem)
