"""How far a computation is, told to whoever watches: in lines, or in the bars of a terminal (`reports/terminal.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol

_LATE = 1.5  # seconds in which nothing is shown
_EVERY = 10.0  # seconds between two lines of a stage


class Stages(Protocol):
    def stage(self, title: str, total: int) -> None:
        """A stage begins, with so many steps."""
        ...

    def step(self, done: int) -> None:
        """So many steps of the stage are done."""
        ...


class Unwatched:
    """Shows nothing."""

    def stage(self, title: str, total: int) -> None:
        """Nothing is shown."""

    def step(self, done: int) -> None:
        """Nothing is shown."""


class InLines(ExitStack):
    """One line for each stage, and more while the stage lasts: where no terminal shows bars."""

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._tell, self._clock = say, clock
        self._title, self._total, self._since, self._said = "", 0, 0.0, 0.0

    def stage(self, title: str, total: int) -> None:
        """Begins a stage, and ends the one before it."""
        self._title, self._total, self._since = title, total, self._clock()
        self._say(f"{title} …")

    def step(self, done: int) -> None:
        """Tells how many steps are done, if nothing was told for a while."""
        if self._clock() - self._said >= _EVERY and 0 < done < self._total:
            left = (self._clock() - self._since) * (self._total / done - 1)
            self._say(f"{self._title}: {done:,} of {self._total:,}, about {_minutes(left)} left")

    def _say(self, line: str) -> None:
        self._said = self._clock()
        self._tell(line)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class ShownLate(ExitStack):
    """Stages of a computation that mostly takes no time: what shows them is made at their first late step."""

    def __init__(self, make: Callable[[], AbstractContextManager[Stages]]) -> None:
        super().__init__()
        self._make, self._begun = make, time.monotonic()
        self._stage: tuple[str, int] = ("", 1)
        self._shown: Stages | None = None

    def stage(self, title: str, total: int) -> None:
        """Begins a stage, which is shown at its first late step."""
        self._stage = (title, total)
        if self._shown is not None:
            self._shown.stage(title, total)

    def step(self, done: int) -> None:
        """Shows how many steps are done."""
        if self._shown is None and time.monotonic() - self._begun > _LATE:
            self._shown = self.enter_context(self._make())
            self._shown.stage(*self._stage)
        if self._shown is not None:
            self._shown.step(done)
