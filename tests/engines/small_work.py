"""Work that workers of an engine do in tests. It imports little, because each worker imports it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

SECRET = "philoctetes"


def process_of(task: int) -> int:
    return os.getpid()


def who_did(task: int) -> tuple[int, int]:
    return task, os.getpid()


def environment(task: int) -> dict[str, str]:
    return dict(os.environ)


def telling(task: int) -> None:
    print(SECRET, flush=True)
    os.write(2, SECRET.encode())
    raise ValueError(SECRET)


@dataclass(frozen=True)
class Suicidal:
    """Its worker kills itself with the first tries of two tasks."""

    folder: str

    def __call__(self, task: int) -> int:
        tried = Path(self.folder) / str(task)
        if task in (3, 5) and not tried.exists():
            tried.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return task
