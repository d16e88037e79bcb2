"""Bars with the time left, for anything longer than two seconds. They go to stderr and show public facts only."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Bars:
    """One bar per stage of a run (federation.simulation.Stages)."""

    def __init__(self, to: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"))
        self._progress = Progress(*columns, TimeRemainingColumn(), console=to, refresh_per_second=5)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def stage(self, title: str, total: int) -> None:
        """A stage begins; the one before it is over."""
        if self._task is not None:
            self._finish()
        self._task = self._progress.add_task(title, total=total)

    def step(self, done: int) -> None:
        """So many steps are done."""
        if self._task is not None:
            self._progress.update(self._task, completed=done)

    def _finish(self) -> None:
        assert self._task is not None
        task = self._progress.tasks[self._task]
        self._progress.update(self._task, total=task.completed or 1, completed=task.completed or 1)
