"""Measurements in a process of their own: how much memory they take at their peak, within limits of time and memory.

Memory is measured on Linux only.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_MIB = 1 << 20
_EVERY = 0.2  # seconds between two looks at processes that the measured one started


class NotMeasured(Exception):
    """A measurement that ended without a result, and why."""


class NotNow(NotMeasured):
    """A measurement that failed for a reason that may be gone at the next start, as a missing package is."""


def conditions() -> dict[str, Any]:
    """Under which conditions a measurement begins: other work on the machine, and what this process may use."""
    policies = {os.SCHED_FIFO: "real time", os.SCHED_RR: "real time"}
    priority = policies.get(os.sched_getscheduler(0)) or f"nice {os.getpriority(os.PRIO_PROCESS, 0)}"
    return {"load": round(os.getloadavg()[0], 1), "processors": len(os.sched_getaffinity(0)), "priority": priority}


@dataclass
class PeakOfFamily:
    """The most memory that a process and its descendants had together, looked at several times a second."""

    process: int
    mebibytes: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> PeakOfFamily:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(_EVERY):
            self.mebibytes = max(self.mebibytes, sum(map(_resident, family_of(self.process))))


def family_of(process: int) -> list[int]:
    """This process and all that it started, and what these started."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _read(folder / "stat")):
            parents.setdefault(int(fields.rsplit(")", 1)[1].split()[1]), []).append(int(folder.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


def finished(command: Sequence[str], seconds: float, mebibytes: int = 0, **environment: str) -> dict[str, Any]:
    """What the command prints as one line of JSON, with `peak_mib`; raises `NotMeasured` where it does not come to that."""
    child = subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        preexec_fn=lambda: _limit(mebibytes),
    )
    with PeakOfFamily(child.pid) as peak:
        try:
            out, complaint = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise NotMeasured(f"did not finish in {seconds:,.0f} s") from late
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.communicate()
    if child.returncode:
        lines, killed = complaint.strip().splitlines(), child.returncode in (-signal.SIGKILL, -signal.SIGABRT)
        if killed or any("MemoryError" in line or "bad_alloc" in line for line in lines[-3:]):
            raise NotMeasured(f"needs more than {mebibytes:,} MiB" if mebibytes else "was killed: not enough memory")
        raise NotNow(lines[-1][:200] if lines else f"ended with {child.returncode}")
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return {**found, "peak_mib": round(max(peak.mebibytes, float(found.get("peak_mib", 0.0))), 1)}


def memory_now(name: str = "VmHWM") -> float:
    """The memory of this process alone, in MiB: VmRSS is what it holds, VmHWM its peak."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) / 1024.0


def _limit(mebibytes: int) -> None:
    if mebibytes:
        resource.setrlimit(resource.RLIMIT_DATA, (mebibytes * _MIB, mebibytes * _MIB))


def _resident(process: int) -> float:
    fields = _read(Path(f"/proc/{process}/statm"))
    return int(fields.split()[1]) * resource.getpagesize() / _MIB if fields else 0.0


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:  # it ended meanwhile
        return ""


_CLEAR = Path("/proc/self/clear_refs")

Work = Callable[..., Callable[[], object]]  # prepares itself, and returns what is to be measured


def measurable() -> bool:
    """Whether this system lets a process forget its peak."""
    return _CLEAR.exists()


def peak_mebibytes(work: Work, *about: Any) -> float:
    """The peak of a piece of work above what its process held before the measured part began.

    A process's peak never falls and imports need more than most work does, so the work says when it begins.
    """
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
    before = memory_now("VmRSS")
    run()
    to.send(memory_now("VmHWM") - before)
    to.close()
