"""How far a computation is, told to whoever watches. The bars of the terminal are in `reports/terminal.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol

_LATE = 1.5  # seconds in which nothing is shown


class Stages(Protocol):
    """Shows the progress of a computation, stage by stage."""

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
