"""Standard output as commands write to it: where it cannot be written, that is said by name. It composes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from securetm.errors import SystemRefused


class StandardOutput:
    """Standard output, as a file that tells whose fault a fault is."""

    def write(self, text: str) -> int:
        """As any file does."""
        with output_named():
            return sys.stdout.write(text)

    def flush(self) -> None:
        """As any file does."""
        with output_named():
            sys.stdout.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)


@contextmanager
def output_named() -> Iterator[None]:
    """Names standard output where the system does not; a reader who has left is no such fault."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        to_nowhere(sys.stdout.fileno())  # what is left of it cannot be written at the end either
        raise SystemRefused("standard output", "cannot be written", problem.strerror or type(problem).__name__) from problem


def to_nowhere(stream: int) -> None:
    """All that is written there from now on is thrown away."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)
