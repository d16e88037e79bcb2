"""How much memory a piece of work takes at its peak, measured in a process of its own. It measures on Linux only.

A process's peak never falls and imports need more than most work does, so the work says when it begins.
"""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CLEAR = Path("/proc/self/clear_refs")

Work = Callable[..., Callable[[], object]]  # prepares itself, and returns what is to be measured


def measurable() -> bool:
    """Whether this system lets a process forget its peak."""
    return _CLEAR.exists()


def peak_mebibytes(work: Work, *about: Any) -> float:
    """The peak above what the process held before the measured part began."""
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_measured, args=(theirs, work, *about))
    child.start()
    theirs.close()
    try:
        peak: float = ours.recv()
    finally:
        child.join()
    return peak


def _measured(to: Any, work: Work, *about: Any) -> None:
    run = work(*about)
    gc.collect()
    _CLEAR.write_text("5")  # the kernel forgets the peak so far
    before = _kibibytes("VmRSS")
    run()
    to.send((_kibibytes("VmHWM") - before) / 1024.0)
    to.close()


def _kibibytes(name: str) -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0])
