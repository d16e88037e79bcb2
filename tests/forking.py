"""Processes of tests, forked from one that has loaded everything and done nothing. It tests nothing itself.

Starting Python and loading the package for each takes longer than what they do. They draw from the operating system, whatever
the tests do.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

LOADED = (
    "torch",
    "securetm.accounting.ledger",
    "securetm.cli.run",
    "lab.processes",
    "securetm.federation.simulation.simulation",
    "securetm.models.neural.prodlda",
    "tests.federation.played",
)


@cache
def forking() -> Any:
    """The context of such processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LOADED))
    return context


def ended(work: Callable[..., None], *about: Any) -> int:
    """How a process ends that does this work."""
    process = forking().Process(target=work, args=about)
    process.start()
    process.join()
    assert process.exitcode is not None
    return int(process.exitcode)


def command(*arguments: str, limits: Mapping[int, int] | None = None) -> tuple[int, str, str]:
    """The command in such a process, with these limits of resources: its exit code, its output and what it complains of."""
    with tempfile.TemporaryDirectory() as place:
        out, err = Path(place) / "out", Path(place) / "err"
        code = ended(_command, arguments, dict(limits or {}), str(out), str(err), str(Path.cwd()))
        return code, out.read_text("utf-8"), err.read_text("utf-8")


def _command(arguments: tuple[str, ...], limits: Mapping[int, int], out: str, err: str, folder: str) -> None:
    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    os.chdir(folder)
    for what, most in limits.items():
        resource.setrlimit(what, (most, most))
    sys.argv = ["securetm", *arguments]
    from securetm.cli.main import main

    main()
