"""Bars with the time left, for what takes longer than two seconds. They go to stderr and show public facts only."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

_BAR, _WIDE = 20, 110  # columns of a bar, and of a terminal that has room for one twice as long
_FIGURES = 35  # columns of what stands behind it: steps, time that went, time that is left
_SHORTEST = 16
_LATE = 1.5  # seconds without bars


class Bars:
    """One bar for each stage of a run."""

    def __init__(self, to: Console) -> None:
        # a narrow terminal has room for the bar and the time left, and cuts what a stage is called
        title = Column(no_wrap=True, overflow="ellipsis", max_width=max(to.width - _FIGURES - _BAR, _SHORTEST))
        said, bar = TextColumn("{task.description}", table_column=title), BarColumn(_BAR if to.width < _WIDE else 2 * _BAR)
        columns = (said, bar, MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"))
        self._progress = Progress(*columns, TimeRemainingColumn(), console=to, refresh_per_second=5)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._task is not None:
            self._progress.stop()

    def stage(self, title: str, total: int) -> None:
        """A stage begins; the one before it is over."""
        if self._task is None:
            self._progress.start()  # not before: what is refused at once shows no bar
        else:
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


class LateBars(Bars):
    """Bars that appear only once a computation has taken a while; most end before."""

    def __init__(self, to: Console) -> None:
        super().__init__(to)
        self._begun, self._next = time.monotonic(), ("", 1)

    def stage(self, title: str, total: int) -> None:
        """A stage begins, and is shown with its first step that comes late."""
        self._next = (title, total)
        if self._task is not None:
            super().stage(title, total)

    def step(self, done: int) -> None:
        """So many steps are done."""
        if self._task is None and time.monotonic() - self._begun > _LATE:
            super().stage(*self._next)
        super().step(done)
