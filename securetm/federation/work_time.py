"""Measures how long all parts of a run took. A part that was killed counts up to its last step.

It measures wall time from `execute` to the end or the interruption. The time between two parts does not count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from securetm.federation.transcript import Transcript
from securetm.stages import Stages

_EVERY = 1.0  # seconds between two writes


@dataclass
class WorkTimer:
    """Passes progress on, and writes now and then how long the run has taken."""

    transcript: Transcript
    stages: Stages
    _begun: float = field(default_factory=time.perf_counter)
    _noted: float = 0.0
    _part: int = 0

    def __enter__(self) -> Self:
        self._part = self.transcript.begin_part()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._note()
        self.transcript.close()

    def stage(self, title: str, total: int) -> None:
        """A stage begins, with so many steps."""
        self._note()
        self.stages.stage(title, total)

    def step(self, done: int) -> None:
        """So many steps of the stage are done."""
        if not self._noted or time.perf_counter() - self._noted > _EVERY:
            self._note()
        self.stages.step(done)

    def seconds(self) -> float:
        """Returns the time of all parts, up to now."""
        self._note()
        return self.transcript.seconds()

    def _note(self) -> None:
        self._noted = time.perf_counter()
        self.transcript.note_part(self._part, self._noted - self._begun)
