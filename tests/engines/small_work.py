"""Work that workers of an engine do in tests. It imports little, because each worker imports it."""

from __future__ import annotations

import os

SECRET = "philoctetes"


def process_of(task: int) -> int:
    return os.getpid()


def environment(task: int) -> dict[str, str]:
    return dict(os.environ)


def telling(task: int) -> None:
    print(SECRET, flush=True)
    os.write(2, SECRET.encode())
    raise ValueError(SECRET)
