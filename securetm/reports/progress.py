"""Progress bars with the time left. They go to standard error and show public facts only."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

_BAR, _WIDE = 20, 110  # characters of a bar; a terminal at least this wide gets a bar twice as long
_FIGURES = 35  # characters behind the bar: steps, time spent, time left
_SHORTEST = 16  # characters of a title
_LATE = 1.5  # seconds without bars


class Bars:
    """One bar for each stage of a run."""

    def __init__(self, to: Console) -> None:
        # a narrow terminal shows the bar and the time left, and cuts the title of the stage
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
        """Begins a stage, and ends the one before it."""
        if self._task is None:
            self._progress.start()  # not earlier: a command that is refused at once shows no bar
        else:
            before = self._progress.tasks[self._task]
            self._progress.update(self._task, total=before.completed or 1, completed=before.completed or 1)
        self._task = self._progress.add_task(title, total=total)

    def step(self, done: int) -> None:
        """Shows how many steps are done."""
        if self._task is not None:
            self._progress.update(self._task, completed=done)


class LateBars(Bars):
    """Bars that appear only if a computation takes a while."""

    def __init__(self, to: Console) -> None:
        super().__init__(to)
        self._begun, self._next = time.monotonic(), ("", 1)

    def stage(self, title: str, total: int) -> None:
        """Begins a stage, which is shown at its first late step."""
        self._next = (title, total)
        if self._task is not None:
            super().stage(title, total)

    def step(self, done: int) -> None:
        """Shows how many steps are done."""
        if self._task is None and time.monotonic() - self._begun > _LATE:
            super().stage(*self._next)
        super().step(done)
