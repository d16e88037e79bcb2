"""A signal that comes just before a call that waits, or while a finaliser runs, still reaches its handler."""

from __future__ import annotations

import ctypes
import operator
import os
import resource
import signal
import sys
from collections import deque
from collections.abc import Callable
from functools import partial

import pytest

from securetm.interrupts import never_lost

from .forking import forking

SECONDS = 60
HEARD, LOST = 3, 4


def ends(work: Callable[[], None]) -> int | None:
    """How a process ends that does this work; None if it still waits after a minute."""
    process = forking().Process(target=work)
    process.start()
    process.join(SECONDS)
    process.kill()
    code = process.exitcode
    process.join()
    return code


def just_before_it_waits(number: int) -> None:
    """Python takes no step of its own between the signal and the reading, since C calls one after the other."""
    end, _ = os.pipe()
    calls = (partial(ctypes.CDLL(None)["raise"], number), partial(os.read, end, 1))
    deque(map(operator.call, calls), maxlen=0)


class Finalised:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def while_a_finaliser_runs() -> None:
    Finalised()
    os.read(os.pipe()[0], 1)


def pressed(how: Callable[[], None]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with never_lost():
            how()
    except KeyboardInterrupt:
        sys.exit(HEARD)
    sys.exit(LOST)


def ended_politely() -> None:
    def leave(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, leave)
    pressed(partial(just_before_it_waits, signal.SIGTERM))


def with_many_open_files() -> None:
    """As a coordinator that many connections stand with: its own files have numbers beyond 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 2_000), most))
    for _ in range(550):
        os.pipe()
    pressed(partial(just_before_it_waits, signal.SIGINT))


@pytest.mark.parametrize(
    "work",
    [
        partial(pressed, partial(just_before_it_waits, signal.SIGINT)),
        ended_politely,
        partial(pressed, while_a_finaliser_runs),
        with_many_open_files,
    ],
    ids=["just before it waits", "a polite end", "while a finaliser runs", "with many open files"],
)
def test_a_signal_is_never_lost(work: Callable[[], None]) -> None:
    assert ends(work) == HEARD


def test_what_was_there_before_is_put_back() -> None:
    before = (signal.getsignal(signal.SIGURG), sys.unraisablehook)
    with never_lost(), never_lost():
        pass
    assert (signal.getsignal(signal.SIGURG), sys.unraisablehook) == before
    assert signal.set_wakeup_fd(-1) == -1
