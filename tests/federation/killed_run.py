"""Run by a test in a process of its own: a run that kills itself, without warning, at a chosen moment.

Arguments: folder, begin or resume, the moment (fsync or round), how many of them it survives, and the profile's plan as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from securetm.corpus.corpus import Corpus
from securetm.federation import coordinator
from securetm.federation.folder import Unwatched, begin, reopen
from securetm.federation.simulation import execute
from securetm.plans import plan_from_tables


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


def main() -> None:
    folder, mode, moment, moments = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    coordinator.SECONDS_BETWEEN_KEEPS = 0.0  # as many moments between two writes as there can be
    if mode == "begin":
        corpora = {path.stem: Corpus.load(path) for path in sorted(Path(sys.argv[5]).glob("*.npz"))}
        begin(folder, plan_from_tables(json.loads(sys.argv[6]), "a test"), corpora)
    count = Countdown(moments)
    if moment == "fsync":
        fsync = os.fsync

        def counted(descriptor: int) -> None:
            count()
            fsync(descriptor)

        os.fsync = counted
    execute(reopen(folder), Rounds(count) if moment == "round" else Unwatched())


if __name__ == "__main__":
    main()
