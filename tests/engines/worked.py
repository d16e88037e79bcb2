"""Work for processes of a pool: small, and able to say where it is and to wait for a test."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]  # scikit-learn brings it


@dataclass(frozen=True)
class Squares:
    """The square of a task, and who made it."""

    def __call__(self, task: int) -> tuple[int, int]:
        return task * task, os.getpid()


@dataclass(frozen=True)
class Waiting:
    """Work that waits at a gate for one task: it writes who it is into a pipe, and waits until it is killed, or for ever."""

    gate: Path
    at: tuple[int, ...]
    long: int = 0  # numbers in each result

    def __call__(self, task: int) -> Any:
        if task in self.at and self._first_time(task):
            with self.gate.open("w") as gate:
                gate.write(f"{os.getpid()}\n")
            threading.Event().wait()
        return task, np.full(self.long, task)

    def _first_time(self, task: int) -> bool:
        try:
            self.gate.with_suffix(f".{task}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def threads_here(_: int) -> dict[str, int]:
    """How many threads the libraries of this process would take."""
    return {"numba": numba.get_num_threads(), "blas": max(library["num_threads"] for library in threadpool_info())}


def killed(_: int) -> None:
    """Ends its process the hard way."""
    os.kill(os.getpid(), 9)


class Unloadable:
    """Work that no other process can make."""

    def __reduce__(self) -> Any:
        return _never_again, (os.getpid(),)


def _never_again(home: int) -> Unloadable:
    if home != os.getpid():
        raise ImportError("not here")
    return Unloadable()
