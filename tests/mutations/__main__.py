"""Makes each fault and runs its tests until one fails, and says which one: `python -m tests.mutations [ID or AREA ...]`.

All is loaded and collected once. Each fault is made in a forked process, in the code of the function where it stands, so that
it takes as long as its tests. Without names it makes all faults and writes `outcome.json`. It ends with 1 if a fault survives
that was caught before.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence

import pytest

from .faults import OUTCOME, ROOT, SURVIVED, Fault, all_faults
from .making import make

MOST_SECONDS = 300  # of a processor: whoever works longer on a fault was caught by it


class Forked:
    """A plugin of pytest: instead of running what was collected, runs it in a process for each fault."""

    def __init__(self, faults: Sequence[Fault], done: Callable[[Fault, str], None]) -> None:
        self._faults, self._done = faults, done
        self._told = 0  # where a forked process writes which test failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """In the first process, all faults; in a forked one None, so that pytest goes on and runs the tests."""
        for fault in self._faults:
            told, self._told = os.pipe()
            child = os.fork()
            if child == 0:
                self._begin(fault, session)
                return None
            os.close(self._told)
            with os.fdopen(told) as stream:
                caught = stream.read().split("\n")[0]
            _, status = os.waitpid(child, 0)
            if not caught and os.WIFEXITED(status) and status:
                raise RuntimeError(f"{fault.id}: its process ended with {os.WEXITSTATUS(status)}, and no test failed")
            self._done(fault, caught or (SURVIVED if status == 0 else f"ended with {status}"))
        return True

    def _begin(self, fault: Fault, session: pytest.Session) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        files = fault.files()
        session.items[:] = [item for item in session.items if item.nodeid.partition("::")[0] in files]
        session.items.sort(key=lambda item: files.index(item.nodeid.partition("::")[0]))
        make(fault)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure is the answer."""
        if report.failed:
            os.write(self._told, f"{report.nodeid}\n".encode())
            os._exit(1)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A forked process ends here."""
        if session.testscollected and os.getpid() != self._first:
            os._exit(int(exitstatus))

    def pytest_sessionstart(self) -> None:
        """Notes which process is the first."""
        self._first = os.getpid()


def run(faults: Sequence[Fault]) -> dict[str, str]:
    """What caught each fault, said as it is found."""
    outcome: dict[str, str] = {}
    begun = time.monotonic()

    def done(fault: Fault, caught: str) -> None:
        outcome[fault.id] = caught
        print(f"{time.monotonic() - begun:6.1f} s  {fault.id}  {caught}  ({fault.breaks})", file=sys.stderr, flush=True)

    for fault in faults:
        fault.made()  # what is wrong with the list is said before anything runs, and nothing is read again
    files = sorted({str(ROOT / file) for fault in faults for file in fault.files()})
    pytest.main(["-q", "-s", "-p", "no:cacheprovider", *files], plugins=[Forked(faults, done)])
    return outcome


def main(names: Sequence[str]) -> int:
    """Runs the faults of these names or areas, or all."""
    chosen = [one for one in all_faults() if not names or one.id in names or one.id.rpartition("-")[0] in names]
    known: dict[str, str] = json.loads(OUTCOME.read_text("utf-8")) if OUTCOME.exists() else {}
    outcome = run(chosen)
    OUTCOME.write_text(json.dumps((known if names else {}) | outcome, indent=0, sort_keys=True) + "\n", "utf-8")
    survivors = [name for name, by in outcome.items() if by == SURVIVED]
    print(f"{len(outcome) - len(survivors)} of {len(chosen)} faults are caught. Not caught: {', '.join(survivors) or 'none'}")
    return int(len(outcome) < len(chosen) or any(known.get(name, SURVIVED) != SURVIVED for name in survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
