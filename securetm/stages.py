"""How far a computation is, told to whoever watches. The bars of the terminal are in `reports/terminal.py`."""

from __future__ import annotations

from typing import Protocol


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
