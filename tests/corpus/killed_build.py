"""A build in a process of its own that is killed, without warning, at a chosen step on the disk. It tests nothing itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from securetm.corpus.corpus_build import CorpusBuild

from .. import forking

STEPS = ("fsync", "replace", "unlink", "rmdir", "mkdir")


def ended(source: Path, folder: Path, step: int, settings: dict[str, Any]) -> int:
    """How a process ends that builds, or goes on, and is killed before its so many-th step; 0: it came to the end."""
    return forking.ended(_build, str(source), folder, step, settings)


def _build(source: str, folder: Path, step: int, settings: dict[str, Any]) -> None:
    left = [step]

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*arguments, **named)

        return instead

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    CorpusBuild(source, folder, **settings).run()
