"""Trials of one recorded run in several processes: what a worker is given, and what it makes of it.

It decides no order and trains no baseline. What comes out is the same in whichever process, and in whatever order.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # scikit-learn brings it

from securetm.auditing.audit_plans import Trial
from securetm.auditing.audit_record import Finding
from securetm.auditing.audit_schedule import SHADOWS, in_time
from securetm.auditing.demonstration import Demonstrations
from securetm.auditing.shadow_time import seconds_of_shadow
from securetm.auditing.trial_on_run import Scored, findings
from securetm.block_answers import IN_PROCESS
from securetm.contracts import Engine
from securetm.engines.local_pool import LocalPool
from securetm.federation.folder import RunFolder, reopen
from securetm.stages import Unwatched

MOST_PROCESSES = 4  # each holds the run's documents
_RESERVE = 1.2  # shadow models may take so many times what was measured of one


@dataclass(frozen=True)
class TrialsToMake:
    """Trials about one view of the run at this place, and its baseline; no trials where there is no time for them."""

    number: int
    trials: tuple[Trial, ...] = ()
    baseline: Path | None = None  # None: the run serves itself
    until: float = 0.0  # by time.perf_counter, which all processes of a machine share


@dataclass(frozen=True)
class TrialsMade:
    """The findings of each trial, what they took, and what was left where that was not enough."""

    number: int
    found: tuple[tuple[Finding, ...], ...] = ()
    seconds: float = 0.0
    left: float | None = None  # seconds, too few for its shadow models
    needed: float = 0.0


@dataclass
class OnRun:
    """Makes trials on a recorded run. A worker keeps what attacks found for the next trials."""

    run: Path
    place: Path
    rounds: int  # of a baseline
    tests: int  # of an epsilon
    secret: bytes = field(repr=False)
    _folders: dict[Path, RunFolder] = field(default_factory=dict, init=False, repr=False)
    _known: dict[object, Scored] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, task: TrialsToMake) -> TrialsMade:
        """The findings of these trials."""
        if not task.trials:
            return TrialsMade(task.number)
        begun = time.perf_counter()
        with threadpool_limits(1):  # linear algebra in several threads waits for itself on busy cores
            runs = Demonstrations(self.place, Unwatched())
            if task.baseline is not None:
                runs.made[task.baseline.name] = self._opened(task.baseline)
            fitting = self._fitting(task, runs)
            if isinstance(fitting, TrialsMade):
                return fitting
            found = tuple(self._made(trial, runs) for trial in fitting)
        return TrialsMade(task.number, found, time.perf_counter() - begun)

    def _made(self, trial: Trial, runs: Demonstrations) -> tuple[Finding, ...]:
        given = self._opened(self.run)
        return findings(trial, runs, given, self.tests, self.rounds, self._known, self.secret)

    def _fitting(self, task: TrialsToMake, runs: Demonstrations) -> tuple[Trial, ...] | TrialsMade:
        """The trials with as many shadow models as there is time for."""
        given, (first, *_) = self._opened(self.run), task.trials
        if SHADOWS not in first.effort or task.until == float("inf"):
            return task.trials
        each = _RESERVE * seconds_of_shadow(first, given, runs, self.rounds, self.secret)
        left = task.until - time.perf_counter()
        fitting = [in_time(trial, given, left, each) for trial in task.trials]
        if any(one is None for one in fitting):
            return TrialsMade(task.number, left=left, needed=each * first.effort[SHADOWS])
        return tuple(one for one in fitting if one is not None)

    def _opened(self, path: Path) -> RunFolder:
        if path not in self._folders:
            self._folders[path] = reopen(path)
        return self._folders[path]


def processes(wanted: int, tasks: int) -> int:
    """How many processes make so many tasks: as many as asked for; of 0, one for each core, and at most four."""
    return max(min(wanted or min(_cores(), MOST_PROCESSES), tasks), 1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def crew_of(number: int) -> Engine:
    """So many processes of this machine; one is this process itself. They end when this process does, however it ends."""
    return IN_PROCESS if number == 1 else LocalPool(workers=number)
