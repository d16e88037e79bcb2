"""Run by tests in a process of its own: children that charge a ledger and are killed, run out of disk, or compete. No test.

One process forks all children. A child writes a byte into a pipe for every answer it would have sent, after the ledger let it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import FrameType
from typing import Any

from dp_accounting import GaussianDpEvent

from securetm.accounting import ledger as room
from securetm.accounting.ledger import Ledger
from securetm.accounting.ledger.ledger import BudgetExhausted
from securetm.accounting.spends import Spend
from securetm.contracts import Budget, Unit
from securetm.errors import Failed

from ...accounting_grid import COARSE, use_grid

BUDGET = Budget(Unit.DOCUMENT, 3.0, 1e-5)
ANSWER = Spend(GaussianDpEvent(15.0), 1e-12)
LARGE = Spend(GaussianDpEvent(7.0), 1e-12)  # the budget is at its end after few of them
LEDGER = str(Path(room.__file__).parent)


def in_child(work: Callable[[Callable[[], None]], None]) -> tuple[int, int]:
    """Forks; the child works. Gives the pipe's end and the child's id."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return ours, child
    try:
        work(lambda: os.write(theirs, b".") and None)
    except BaseException:  # noqa: BLE001 - said and ended: whatever it was, it must not run on as its parent would
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def sent_by(ours: int, child: int) -> int:
    """Waits for the child; how many answers it sent."""
    with os.fdopen(ours, "rb") as pipe:
        sent = len(pipe.read())
    if (code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) > 0:  # below 0 it was killed, as it should be
        raise ChildProcessError(f"a child ended with {code}; standard error says why")
    return sent


def countdown(moments: int) -> Callable[[], int]:
    left = moments

    def count() -> int:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    return count


def killed_at_line(path: Path, moments: int, send: Callable[[], None]) -> None:
    """Dies before the given line of the ledger's own code: while it is created, opened, asked, written to."""
    count = countdown(moments)

    def trace(frame: FrameType, what: str, value: Any) -> Any:
        if not frame.f_code.co_filename.startswith(LEDGER):
            return None
        if what == "line":
            count()
        return trace

    sys.settrace(trace)
    charge_for_ever(Ledger.open(path, "alice", BUDGET), send)


def killed_at_step(path: Path, moments: int, send: Callable[[], None]) -> None:
    """Dies in the middle of what SQLite does."""
    ledger = Ledger.open(path, "alice", BUDGET)
    ledger._file._opened.set_progress_handler(countdown(moments), 1)
    charge_for_ever(ledger, send)


def charge_for_ever(ledger: Ledger, send: Callable[[], None], run: str = "a run", answer: Spend = ANSWER) -> None:
    while True:
        ledger.charge(run, answer, {"profile": "dp-local", "unit": "document"})
        send()


def compete(path: Path, run: str, all_began: Barrier, send: Callable[[], None]) -> None:
    ledger = Ledger.open(path, "alice", BUDGET)
    ledger.charge(run, LARGE, {"profile": "dp-local", "unit": "document"})
    send()
    all_began.wait(60)  # a child that does not come is an error, and no wait for ever
    try:
        charge_for_ever(ledger, send, run, LARGE)
    except BudgetExhausted:
        ledger.close()


def fill(path: Path, room: int, send: Callable[[], None]) -> None:
    """Charges until the log may not grow any more, then once more when it may again."""
    ledger = Ledger.open(path, "alice", BUDGET)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, most[1]))
    try:
        charge_for_ever(ledger, send)
    except Failed:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
        ledger.charge("a run", ANSWER, {"profile": "dp-local", "unit": "document"})
        send()


def charge(to: Connection, what: str, folder: Path, numbers: Sequence[int]) -> None:
    """Does that in a child for each number, and sends how many answers each child sent."""
    use_grid(COARSE)
    if what == "line":
        done = [sent_by(*in_child(lambda send, n=n: killed_at_line(folder / f"{n}", n, send))) for n in numbers]
    elif what == "step":
        done = [sent_by(*in_child(lambda send, n=n: killed_at_step(folder / f"{n}", n, send))) for n in numbers]
    elif what == "full":
        done = [sent_by(*in_child(lambda send, n=n: fill(folder / f"{n}", n, send))) for n in numbers]
    else:
        all_began = get_context("fork").Barrier(len(numbers))
        children = [in_child(lambda send, n=n: compete(folder / "both", f"run {n}", all_began, send)) for n in numbers]
        done = [sent_by(*child) for child in children]
    to.send(done)
