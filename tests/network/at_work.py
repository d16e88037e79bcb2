"""A hub or a dialer in a process of its own, so that a test can attack it and look at its memory.

It writes a line for everything that happens. `python -m tests.network.at_work hub|party HOME [NAME]`
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from subprocess import PIPE, Popen

from securetm.credentials.keys import Keys
from securetm.credentials.roster import read_roster
from securetm.federation.network.dialing import BackOff, Dialer
from securetm.federation.network.events import NetworkEvents
from securetm.federation.network.hub import Hub

from .meeting import AGREED, PATIENCE

ROSTER = "roster.toml"
LARGEST = 3 << 20  # bytes of a request or a reply
DEADLINE = 5.0  # seconds of a wave
ROOM = 16 << 20  # bytes of replies in memory


def asked(number: int) -> bytes:
    """The request of that wave."""
    return number.to_bytes(8, "big") * 40_000


def answered(request: bytes) -> bytes:
    """An honest party's reply: other bytes than the request, so that an echo is none."""
    return request[::-1] * 2


class Said(NetworkEvents):
    """Writes what happens, one line for each event."""

    def connected(self, party: str) -> None:
        say("connected", party)

    def lost(self, party: str, reason: str) -> None:
        say("lost", party)

    def refused(self, party: str, reason: str) -> None:
        say("refused", party, reason.replace(" ", "_"))


def say(*words: object) -> None:
    print(*words, flush=True)


def run_hub(home: Path) -> None:
    """Asks whoever is there, wave after wave, until the input ends. Replies of the party `south` must be right."""
    roster = read_roster(home / ROSTER)
    authorities = ((home / "coordinator" / "authority" / "authority.pem").read_bytes(),)
    keys = Keys.open(home / "coordinator" / "keys")
    hub = Hub(keys, roster, AGREED, home / "spool", roster.address, Said(), authorities, ROOM)
    hub.start()
    say("listening")
    ended = _at_the_end_of_input()
    parties, number = hub.parties(DEADLINE), 0
    while not ended.wait(0.02):
        number += 1
        for name, reply in parties.ask(dict.fromkeys(hub.present(), asked(number)), LARGEST):
            if name == "south" and reply == answered(asked(number)):
                say("right", number)
    hub.close()


def run_party(home: Path, name: str) -> None:
    """Answers until the input ends."""
    roster = read_roster(home / ROSTER)
    keys = Keys.open(home / name / "keys")
    Dialer(name, keys, roster, AGREED, lambda: LARGEST, Said(), BackOff(0.01, 0.05)).run(answered, _at_the_end_of_input())


def _at_the_end_of_input() -> threading.Event:
    ended = threading.Event()

    def read() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    return ended


class AtWork:
    """Such a process, as a test sees it."""

    def __init__(self, process: Popen[str]) -> None:
        self.process, self._lines = process, Queue[str]()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())

    def hear(self, *words: str) -> str:
        """Waits for a line that begins so, and drops those before it."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"it never said {words}; it ended with {self.process.poll()}") from None
            if line.split()[: len(words)] == list(words):
                return line

    def heard(self) -> list[str]:
        """Everything that it has said and nobody has heard."""
        return [self._lines.get_nowait() for _ in range(self._lines.qsize())]

    def memory(self, most: bool = False) -> int:
        """The bytes of its memory now, or the most that there were."""
        wanted = "VmHWM:" if most else "VmRSS:"
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(wanted)) * 1024


@contextmanager
def at_work(*arguments: object) -> Iterator[AtWork]:
    """Runs such a process until the block ends."""
    command = [sys.executable, "-m", "tests.network.at_work", *map(str, arguments)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            yield AtWork(process)
            assert process.poll() is None, "it ended by itself"
        finally:
            assert process.stdin is not None
            process.stdin.close()
            if process.wait(PATIENCE) is None:
                process.kill()


if __name__ == "__main__":
    {"hub": run_hub, "party": run_party}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
