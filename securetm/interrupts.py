"""Ctrl-C: held back while something must not stop half-way, and never lost."""

from __future__ import annotations

import _thread
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_NUDGE = signal.SIGURG  # the operating system ignores it, unless somebody asks for it
_BETWEEN = 0.02  # seconds between nudges


@contextmanager
def undisturbed() -> Iterator[None]:
    """Holds Ctrl-C back until the end of the block, which should take milliseconds.

    Python interrupts only the main thread, so other threads need no such block.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def never_lost() -> Iterator[None]:
    """Within the block, every signal that Python handles reaches its handler, whatever the main thread waits for.

    Python notes a signal, and runs its handler before its next step. If the signal comes just before a call that waits,
    such as the reading of a line, Python notes it, waits, and never comes to that step. Python also drops a
    `KeyboardInterrupt` that a finaliser was running for. So each signal wakes a second thread, which interrupts the main
    thread's waiting until the handler has run.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch()
    try:
        yield
    finally:
        watch.end()


class _Watch:
    """The second thread, and what it needs. Only the main thread begins and ends it."""

    def __init__(self) -> None:
        self._reached = False  # whether the main thread ran its handlers since the last nudge was wanted
        self._again = False  # whether Python dropped an interrupt
        self._main = threading.get_ident()
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)  # Python asks for it: a handler must not wait
        self._before = signal.signal(_NUDGE, self._reach), signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._dropped
        self._thread = threading.Thread(target=self._watch, name="signals", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Puts back what was there before."""
        with undisturbed():
            sys.unraisablehook = self._hook
            signal.set_wakeup_fd(self._before[1])
            os.close(self._wakes)  # the other end then reads as ended
            self._thread.join()
            os.close(self._woken)
            signal.signal(_NUDGE, self._before[0])

    def _reach(self, number: int, frame: FrameType | None) -> None:
        """Python runs handlers in the order of their numbers, so that of Ctrl-C (2) or SIGTERM (15) ran before this one."""
        del number, frame
        self._reached = True

    def _dropped(self, dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            self._hook(dropped)
            return
        while True:
            self._again = True
            try:  # the other thread may be so fast that this place is interrupted, too
                os.write(self._wakes, bytes([signal.SIGINT]))
                return
            except KeyboardInterrupt:
                continue

    def _watch(self) -> None:
        while numbers := self._numbers():
            if set(numbers) == {_NUDGE}:
                continue
            if self._again:
                self._again = False
                _thread.interrupt_main()
            self._reached = False
            while not self._reached:
                signal.pthread_kill(self._main, _NUDGE)
                select.select([], [], [], _BETWEEN)

    def _numbers(self) -> bytes:
        """The numbers of the signals that came; empty once the block ends."""
        awaited = select.poll()  # select() takes no number from 1,024 on, and a coordinator has thousands of connections
        awaited.register(self._woken, select.POLLIN)
        awaited.poll()
        return os.read(self._woken, 4096)
