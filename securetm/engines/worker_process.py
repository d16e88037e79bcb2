"""What a worker of a local pool does: it takes the work of a call and its tasks, one by one, and sends what came of each.

It ends when its party's process does, however that ends, even in the middle of a task. It decides nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from securetm.engines.tasks import packed_outcome, tried, unpacked

HELLO, WORK, TASK = b"hello", b"work", b"task"  # the first message of a worker; what goes before a message to it


def serve(channel_number: int) -> None:
    """Answers on the channel with that number until its other end closes."""
    channel, inbox = Connection(channel_number), SimpleQueue[bytes]()
    Thread(target=_receive, args=(channel, inbox), daemon=True).start()
    _send(channel, HELLO)
    work: Callable[[Any], Any] = _no_work
    while True:
        kind, content = inbox.get(), inbox.get()
        if kind == WORK:
            work = _unpacked_work(content)
        else:
            _send(channel, packed_outcome(tried(_with_unpacked(work), content)))


def _receive(channel: Connection, inbox: SimpleQueue[bytes]) -> None:
    """Takes messages in a thread of its own, so that the end of the party's process is seen in the middle of a task too."""
    try:
        while True:
            inbox.put(channel.recv_bytes())
    finally:
        os._exit(0)  # nothing is left to do, and nobody to tell


def _send(channel: Connection, content: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # the other thread sees it too, and ends the process
        channel.send_bytes(content)


def _unpacked_work(content: bytes) -> Callable[[Any], Any]:
    """The work of a call; where it cannot be made here, work that says so of each task."""
    try:
        found: Callable[[Any], Any] = unpacked(content)
    except Exception as problem:  # noqa: BLE001 - a module of a stranger that cannot be imported here, for one
        return _Refused(problem)
    return found


def _with_unpacked(work: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    return lambda content: work(unpacked(content))


class _Refused:
    """Work that could not be made here."""

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def __call__(self, _: Any) -> Any:
        raise self._problem


def _no_work(_: Any) -> Any:
    raise AssertionError("a task came before its work")
