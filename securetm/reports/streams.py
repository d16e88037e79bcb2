"""Standard output with errors that name it. This module composes no text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from securetm.errors import SystemRefused


class StandardOutput:
    """Standard output as a file whose errors name it."""

    def write(self, text: str) -> int:
        """Writes the text."""
        with output_named():
            return sys.stdout.write(text)

    def flush(self) -> None:
        """Flushes the stream."""
        with output_named():
            sys.stdout.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)


@contextmanager
def output_named() -> Iterator[None]:
    """Names standard output in an error of the system. A broken pipe stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        to_nowhere(sys.stdout.fileno())  # the rest of the buffer could not be written at exit either
        raise SystemRefused("standard output", "cannot be written", problem.strerror or type(problem).__name__) from problem


def to_nowhere(stream: int) -> None:
    """Discards everything that is written to the stream from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)
