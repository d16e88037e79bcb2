"""The contract of an engine: it carries out the pieces of one party's answer, in this process or in others.

It knows neither documents nor questions: a task and the work on it are whatever its caller says, if they can be pickled.
No other role can tell which engine a party has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Carries out tasks where a party's documents lie.

    `work` holds what all tasks of a call share (the question with its state); it is sent once to each worker. A task is small:
    it names its blocks and says where they lie. An engine may carry out a task more than once, where a worker was lost, and
    gives one result of it. So a task changes nothing that another try reads: what it keeps on disk is a new file.
    """

    @property
    def workers(self) -> int: ...  # tasks that are carried out at the same time
    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]: ...  # in any order; raises what `work` raises
    def close(self) -> None: ...  # ends every worker; nothing is lost
