"""What runs in Ray's workers: an actor that holds the question of a round and answers tasks about shards. It imports no Ray."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np

from securetm.engines.tasks import TriedTask, packed_outcome, tried, unpacked
from securetm.errors import Failed
from securetm.version import __version__


def versions() -> str:
    """What answers may depend on, in words."""
    return f"securetm {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"


class ShardHolder:
    """An actor. It keeps open what it has read, so the same shards come to it again where that is possible."""

    def __init__(self) -> None:
        self._work: TriedTask[Any] = TriedTask()
        nowhere = os.open(os.devnull, os.O_WRONLY)  # what a part prints may quote documents, and Ray keeps it in files
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        os.close(nowhere)

    def versions(self) -> str:
        return versions()

    def hold(self, work: bytes) -> None:
        self._work = tried(unpacked, work)

    def answer(self, task: bytes) -> bytes:
        """What came of a task. Nothing is raised here: Ray would write it into its logs."""
        return packed_outcome(tried(self._answered, task))

    def _answered(self, task: bytes) -> Any:
        return self._work.value()(unpacked(task))


def check_versions(theirs: str) -> None:
    if theirs != versions():
        raise Failed(
            "a worker of the Ray cluster has {theirs}, and this party has {ours}: their answers may differ",
            hint="install the same versions on every machine of the cluster",
            theirs=theirs,
            ours=versions(),
        )
