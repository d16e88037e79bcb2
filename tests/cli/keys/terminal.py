"""A command as somebody runs it in a terminal: a process of its own, whose input is a pseudo-terminal. No test of its own."""

from __future__ import annotations

import os
import pty
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...forking import forking
from ..conftest import Said

SECONDS = 120


def typed(arguments: Sequence[str], answers: str) -> Said:
    """Runs the command, and types these answers ahead."""
    with _started(arguments) as (process, ours):
        os.write(ours, answers.encode())
        return process.ended()


def typed_secretly(arguments: Sequence[str], *answers: str) -> Said:
    """Runs the command, and types each answer after the terminal has shown a question. What it showed comes first on stderr."""
    shown = b""
    with _started(arguments) as (process, ours):
        for number, answer in enumerate(answers, start=1):
            while shown.count(b": ") < number and select.select([ours], [], [], SECONDS)[0]:
                shown += os.read(ours, 1000)
            os.write(ours, f"{answer}\n".encode())
        ended = process.ended()
        while select.select([ours], [], [], 0)[0]:
            shown += os.read(ours, 1000)
    return Said(ended.code, ended.out, shown.decode() + ended.err)


def interrupted_at(arguments: Sequence[str], prompt: str) -> Said:
    """Runs the command, and presses Ctrl-C once it shows this prompt on standard error."""
    shown = ""
    with _started(arguments) as (process, ours):
        while prompt not in shown and select.select([process.err], [], [], SECONDS)[0]:
            shown += os.read(process.err.fileno(), 1000).decode()
        os.write(ours, b"\x03")
        ended = process.ended()
    return Said(ended.code, ended.out, shown + ended.err)


@contextmanager
def _started(arguments: Sequence[str]) -> Iterator[tuple[InTerminal, int]]:
    ours, theirs = pty.openpty()
    process = InTerminal(arguments, os.ttyname(theirs))
    try:
        yield process, ours
    finally:
        process.close()
        os.close(ours)
        os.close(theirs)


class InTerminal:
    """A command in a process of its own, forked from one that has loaded everything, with the ends of its two outputs."""

    def __init__(self, arguments: Sequence[str], terminal: str) -> None:
        (self.out, out), (self.err, err) = forking().Pipe(duplex=False), forking().Pipe(duplex=False)
        about = (list(arguments), terminal, out, err, str(Path.cwd()), dict(os.environ))
        self.process = forking().Process(target=_in_terminal, args=about)
        self.process.start()
        out.close()
        err.close()

    def ended(self) -> Said:
        """What it said, once it has ended."""
        said = {self.out.fileno(): b"", self.err.fileno(): b""}
        reading = list(said)
        while reading:
            ready = select.select(reading, [], [], SECONDS)[0]
            assert ready, "the command neither ends nor says anything"
            for one in ready:
                piece = os.read(one, 65536)
                said[one] += piece
                if not piece:
                    reading.remove(one)
        self.process.join(SECONDS)
        return Said(self.process.exitcode, *(text.decode() for text in said.values()))

    def close(self) -> None:
        """Ends it, if it still runs."""
        self.process.kill()
        self.process.join()
        self.out.close()
        self.err.close()


def _in_terminal(arguments: list[str], terminal: str, out: Any, err: Any, folder: str, environment: dict[str, str]) -> None:
    """The terminal becomes the one that controls this process, so that getpass asks there."""
    os.setsid()
    for stream, place in enumerate((os.open(terminal, os.O_RDWR), out.fileno(), err.fileno())):
        os.dup2(place, stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115 - they end with it
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["securetm", *arguments]
    from securetm.cli.main import main

    main()
