"""A run in a process of its own that kills itself, without warning, at a chosen moment. It tests nothing itself."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from securetm.corpus.corpus import Corpus
from securetm.federation.coordinator import training
from securetm.federation.folder import begin, reopen
from securetm.federation.simulation.simulation import execute
from securetm.plans.recommend import plan_from_tables
from securetm.stages import Unwatched

from .. import forking
from ..accounting_grid import COARSE, use_grid


class Countdown:
    """Kills this process when it has counted to zero."""

    def __init__(self, moments: int) -> None:
        self.left = moments

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Rounds(Unwatched):
    """Counts training rounds."""

    def __init__(self, count: Countdown) -> None:
        self.count = count

    def step(self, done: int) -> None:
        del done
        self.count()


def ended(folder: Path, mode: str, moment: str, moments: int, *more: str) -> int:
    """How a process ends that begins (`more`: a folder of corpora, the plan as JSON) or resumes this run.

    It kills itself after so many of these moments: rounds, or writes to the disk.
    """
    return forking.ended(_run, folder, mode, moment, moments, *more)


def _run(folder: Path, mode: str, moment: str, moments: int, *more: str) -> None:
    use_grid(COARSE)
    training.SECONDS_BETWEEN_KEEPS = 0.0  # as many moments between two writes as there can be
    if mode == "begin":
        corpora = {path.stem: Corpus.load(path) for path in sorted(Path(more[0]).glob("*.npz"))}
        begin(folder, plan_from_tables(json.loads(more[1]), "a test"), corpora)
    count = Countdown(moments)
    if moment == "fsync":
        fsync = os.fsync

        def counted(descriptor: int) -> None:
            count()
            fsync(descriptor)

        os.fsync = counted
    execute(reopen(folder), Rounds(count) if moment == "round" else Unwatched(), comparison=False)
