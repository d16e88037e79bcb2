"""Other people's topic models, run in an environment of its own and asked to train a slice at a time. It imports none of them.

`make bench-peers` makes that environment; without it a peer is missing, and said to be.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from lab.peers import scripts
from lab.peers.flower import interpreter
from securetm.contracts import Array

TOMOTOPY, SCIKIT = "tomotopy", "scikit-learn"
_SLICE = 1.0  # seconds that a peer trains at a time, about


class PeerMissing(Exception):
    """A peer that is not installed, and how it would be."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} (in an environment of its own: make bench-peers)")


class PeerProcess:
    """One peer's model in a process of its own, which waits while others train."""

    def __init__(self, name: str, counts: Path, settings: tuple[Any, ...], script: str = "lda_slices.py") -> None:
        python = interpreter()
        if python is None:
            raise PeerMissing(name)
        command = [str(python), str(Path(scripts.__file__).with_name(script)), name, str(counts), *map(str, settings)]
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._folder = tempfile.TemporaryDirectory()
        self.seconds, self.passes = 0.0, 0
        hello = self._heard(name)
        self.title = f"{name} {hello['version']} ({hello.get('instructions', settings[-1])})"

    def advance(self, at_most: float) -> None:
        """Passes over the documents for about a second, or for what is left until then; never less than one."""
        each = self.seconds / self.passes if self.passes else _SLICE
        passes = max(1, int(min(_SLICE, at_most - self.seconds) / each))
        self.seconds += self.train(passes)

    def train(self, passes: int) -> float:
        """So many passes over the documents, and the seconds that they took."""
        self.passes += passes
        return self._told(passes, "-")

    def topics(self) -> tuple[Array, Array]:
        """Topics x words, and each topic's prior, as they are now."""
        path = Path(self._folder.name) / "topics.npz"
        self._told(0, str(path))
        with np.load(path) as found:
            return found["topics"], found["alpha"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate("")  # it ends where its input does
        self._folder.cleanup()

    def _told(self, passes: int, path: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{passes} {path}\n")
        self._process.stdin.flush()
        return float(self._heard("")["seconds"])

    def _heard(self, name: str) -> dict[str, Any]:
        """Its next line; a peer that says nothing at first is not installed, and one that stops later has failed."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return dict(json.loads(line))
        _, complaint = self._process.communicate()
        if name and "ModuleNotFoundError" in complaint:
            raise PeerMissing(name)
        raise RuntimeError(complaint)
