"""Whether a member's process works on this machine, found out in milliseconds: monitors ask every few seconds.

Both roles hold the lock of their folder while they work. A coordinator also has its network loop renew a stamp, so that one
which hangs is found. Nothing is asked over the network, and little is imported.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from securetm.data_homes import COORDINATOR_OUT, party_home

LOCK, PULSE = "lock", "pulse"
EVERY = 2.0  # seconds between two stamps
_LONGEST = 30.0  # seconds without one, on a machine that is busy
_STAMP = struct.Struct("<d")


def renew_stamp(folder: Path) -> None:
    """Says that the coordinator whose run this folder holds works: seconds since the machine started."""
    opened = os.open(folder / PULSE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(opened, _STAMP.pack(time.monotonic()), 0)
    finally:
        os.close(opened)


def remove_stamp(folder: Path) -> None:
    """The coordinator is about to end."""
    (folder / PULSE).unlink(missing_ok=True)


def check_works(file: Path, tables: Mapping[str, Any]) -> str:
    """A sentence that says that the process of this file works; refuses if it does not."""
    role = "party" if "data" in tables else "coordinator"  # a PARTY.toml names data, a plan does not
    if problem := _why_not(tables, file.parent):
        from securetm.errors import Failed

        raise Failed(
            "{name} does not work: {problem}",
            hint="start it, or wait until it has started; `securetm serve` and `securetm join` say what stops them",
            name=tables["name"] if role == "party" else role,
            problem=problem,
        )
    return f"The {role} of {file} works."


def _why_not(tables: Mapping[str, Any], beside: Path) -> str:
    """What is wrong with the process of this file, in words; empty if it works."""
    if "data" not in tables:
        folder = beside / tables.get("coordinator", {}).get("out", COORDINATOR_OUT)
        return _unlocked(folder, f"the run in {folder}") or _without_pulse(folder)
    data_set = tables["data"].get("identity", "")
    home = party_home(tables["name"], tables.get("home", ""), beside)
    return _unlocked(home / "data" / data_set, f"data set {data_set}")


def _unlocked(folder: Path, named: str) -> str:
    lock = folder / LOCK
    if not lock.is_file():
        return f"no process has worked on {named} yet"
    with lock.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)  # held for no longer than it takes to leave this block
        except BlockingIOError:
            return ""
    return f"no process works on {named}"


def _without_pulse(folder: Path) -> str:
    try:
        content = (folder / PULSE).read_bytes()
    except FileNotFoundError:
        return "it is about to begin or to end"
    (stamp,) = _STAMP.unpack(content) if len(content) == _STAMP.size else (0.0,)
    since = time.monotonic() - stamp
    return "" if 0 <= since <= _LONGEST else "its network has not moved for half a minute"
