"""How far a computation is, told to whoever watches: in lines, or in the bars of a terminal (`reports/terminal.py`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Protocol, Self

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


class InLines:
    """Lines of progress where no terminal shows bars: one for each stage, and one every ten seconds while it lasts.

    A thread of its own says them, so that a long step is no silence.
    """

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = say, clock
        self._title, self._done, self._total = "", 0, 0
        self._since = self._first_at = self._said = 0.0
        self._first: int | None = None  # steps at the first report: what was kept from before took no time
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def stage(self, title: str, total: int) -> None:
        """Begins a stage, and ends the one before it."""
        with self._lock:
            self._title, self._done, self._total, self._since, self._first = title, 0, total, self._clock(), None
            self._say(f"{title} …")

    def step(self, done: int) -> None:
        """Tells how many steps are done, if nothing was told for a while."""
        with self._lock:
            if self._first is None:
                self._first, self._first_at = done, self._clock()
            self._done = done
        self.say_if_late()

    def say_if_late(self) -> None:
        """Tells how far the stage is, if nothing was told for a while."""
        with self._lock:
            now = self._clock()
            if not self._title or now - self._said < _EVERY:
                return
            said, lasted = f"{self._title}: ", f"{_minutes(now - self._since)} so far"
            if self._first is not None and self._first < self._done < self._total:
                left = (now - self._first_at) * (self._total - self._done) / (self._done - self._first)
                self._say(f"{said}{self._done:,} of {self._total:,}, about {_minutes(left)} left")
            elif self._total > 1:
                self._say(f"{said}{self._done:,} of {self._total:,}, {lasted}")
            else:
                self._say(said + lasted)

    def _watch(self) -> None:
        with suppress(OSError, ValueError):  # nobody reads these lines any more
            while not self._ended.wait(1.0):
                self.say_if_late()

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
