"""Helper processes for large vectors: SEAL's Python bindings hold the interpreter lock. They know no protocol and no network.

A helper is a child of this process and talks through pipes only. It is started by its own command line, never by forking
(threads of torch do not survive that) nor by importing the user's script again; it ends when the pipe closes.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import msgspec
import numpy as np

from securetm.aggregation.homomorphic.parameters import Fit
from securetm.contracts import Array
from securetm.data_classes import dataclass
from securetm.errors import Failed

WORTH = 512  # ciphertexts in one piece of work: about a million values, a tenth of a second
MOST = 3  # helpers beside this process

_started: list[Helper] = []
_owner = 0  # the process that started them: a fork must not share their pipes
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Work:
    """What a helper does to the rows that follow."""

    do: str
    code: str
    fit: Fit


def put_work(pipe: IO[bytes], work: Work | None, arrays: Sequence[Array]) -> None:
    """The work (none in a reply) and the arrays' shapes, then each array as it lies in memory."""
    head = msgspec.msgpack.encode((work, [(array.dtype.str, array.shape) for array in arrays]))
    pipe.write(struct.pack("<I", len(head)) + head)
    for array in arrays:
        pipe.write(np.ascontiguousarray(array).data)
    pipe.flush()


def take_work(pipe: IO[bytes]) -> tuple[Work | None, list[Array]] | None:
    """What `put_work` wrote, or nothing if the other side is gone."""
    start = pipe.read(4)
    if len(start) < 4:
        return None
    head = pipe.read(struct.unpack("<I", start)[0])
    work, shapes = msgspec.msgpack.decode(head, type=tuple[Work | None, list[tuple[str, list[int]]]])
    arrays = []
    for kind, shape in shapes:
        array = np.empty(shape, dtype=kind)
        content = pipe.read(array.nbytes)
        if len(content) < array.nbytes:
            return None
        arrays.append(np.frombuffer(content, dtype=kind).reshape(shape))
    return work, arrays


class Helper:
    def __init__(self) -> None:
        root = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH", ""))))
        command = [sys.executable, "-m", "securetm.aggregation.homomorphic.worker"]
        self._child = subprocess.Popen(  # noqa: S603 - this interpreter and a module of our own, nothing from outside
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._asked, self._replies = self._child.stdin, self._child.stdout

    def ask(self, work: Work, arrays: Sequence[Array]) -> None:
        """Hands out a piece of work; the helper reads all of it before it answers."""
        try:
            put_work(self._asked, work, arrays)
        except OSError as problem:
            raise _died() from problem

    def done(self) -> list[Array]:
        found = take_work(self._replies)
        if found is None:
            raise _died()
        return found[1]

    def end(self) -> None:
        """Closes the pipes, which ends the helper."""
        self._replies.close()
        try:
            self._asked.close()
        except BrokenPipeError:
            self._child.kill()  # it is gone, or about to be
        self._child.wait()


def end_all() -> None:
    """Ends this process's helpers; the next large piece of work starts new ones."""
    if _owner == os.getpid():
        for helper in _started:
            helper.end()
    _started.clear()


atexit.register(end_all)


def _helpers() -> list[Helper]:
    global _owner
    if _owner != os.getpid():
        _started.clear()
        _owner = os.getpid()
    wanted = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST + 1) - 1
    while len(_started) < wanted:
        _started.append(Helper())
    return _started


def spread(here: Callable[..., Sequence[Array]], work: Work, secret: Array, arrays: Sequence[Array]) -> list[Array]:
    """Runs `here(*arrays)` row by row over this process and its helpers; small work stays here."""
    if len(arrays[0]) < WORTH:
        return list(here(*arrays))
    with _one_at_a_time:
        helpers = _helpers()
        own, *shares = zip(*(np.array_split(array, len(helpers) + 1) for array in arrays), strict=True)
        try:
            for helper, share in zip(helpers, shares, strict=True):
                helper.ask(work, [secret, *share])
            parts = [list(here(*own)), *(helper.done() for helper in helpers)]
        except BaseException:
            end_all()  # a reply that nobody took would be taken for the next one
            raise
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def _died() -> Failed:
    return Failed(
        "a helper process that encrypts or decrypts ended before its work was done",
        hint="is there enough memory? the round can be tried again; helpers are started anew",
    )
