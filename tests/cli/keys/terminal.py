"""A command as somebody runs it in a terminal: a process of its own, whose input is a pseudo-terminal. No test of its own."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..conftest import Said

SECONDS = 120


def typed(arguments: Sequence[str], answers: str) -> Said:
    """Runs the command, and types these answers ahead."""
    with _started(arguments) as (process, ours):
        os.write(ours, answers.encode())
        return _ended(process)


def typed_secretly(arguments: Sequence[str], *answers: str) -> Said:
    """Runs the command, and types each answer after the terminal has shown a question. What it showed comes first on stderr."""
    shown = b""
    with _started(arguments) as (process, ours):
        for number, answer in enumerate(answers, start=1):
            while shown.count(b": ") < number and select.select([ours], [], [], SECONDS)[0]:
                shown += os.read(ours, 1000)
            os.write(ours, f"{answer}\n".encode())
        ended = _ended(process)
        while select.select([ours], [], [], 0)[0]:
            shown += os.read(ours, 1000)
    return Said(ended.code, ended.out, shown.decode() + ended.err)


def interrupted_at(arguments: Sequence[str], prompt: str) -> Said:
    """Runs the command, and presses Ctrl-C once it shows this prompt on standard error."""
    shown = ""
    with _started(arguments) as (process, ours):
        assert process.stderr is not None
        while prompt not in shown and select.select([process.stderr], [], [], SECONDS)[0]:
            shown += os.read(process.stderr.fileno(), 1000).decode()
        os.write(ours, b"\x03")
        ended = _ended(process)
    return Said(ended.code, ended.out, shown + ended.err)


@contextmanager
def _started(arguments: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _WITH_TERMINAL, *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=theirs, stdout=pipe, stderr=pipe, start_new_session=True, text=True)
    try:
        yield process, ours
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)


def _ended(process: subprocess.Popen[str]) -> Said:
    out, err = process.communicate(timeout=SECONDS)
    return Said(process.returncode, out, err)


# the terminal that is its input becomes the one that controls it, so that getpass asks there
_WITH_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from securetm.cli.main import main
main()
"""
