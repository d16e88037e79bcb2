"""Whether a member's process works on this machine, found out in milliseconds: monitors ask every few seconds.

Both roles hold the lock of their folder while they work. A coordinator also has its network loop renew a stamp, so that one
which hangs is found. Nothing is asked over the network, and little is imported.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time

from securetm.data_homes import COORDINATOR_OUT, party_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

LOCK, PULSE = "lock", "pulse"
EVERY = 2.0  # seconds between two stamps
_LONGEST = 30.0  # seconds without one, on a machine that is busy
_LOOKED_FOR = ("name", "home", "data", "identity", "coordinator", "out")
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


def check_works(file: str | Path, tables: Mapping[str, Any]) -> str:
    """A sentence that says that the process of this file works; refuses if it does not."""
    role = "party" if "data" in tables else "coordinator"  # a PARTY.toml names data, a plan does not
    if problem := _why_not(tables, os.path.dirname(file)):
        from securetm.errors import Failed

        raise Failed(
            "{name} does not work: {problem}",
            hint="start it, or wait until it has started; `securetm serve` and `securetm join` say what stops them",
            name=tables["name"] if role == "party" else role,
            problem=problem,
        )
    return f"The {role} of {file} works."


def plain_tables(text: str) -> dict[str, Any] | None:
    """What this TOML says, if every line of it is plain; else None: then it takes a reader of TOML.

    Plain are comments, `[section]`, and `key = value` whose value ends on its line. Only strings without escapes are read, and
    all that a probe looks for has to be such a string. To load the reader takes longer than all the rest of a probe.
    """
    if '"""' in text or "'''" in text:
        return None
    tables: dict[str, Any] = {}
    here = tables
    for line in map(str.strip, text.split("\n")):
        if not line or line[0] == "#":
            continue
        heads = line[0] == "["
        name, closed, after = line[1:].partition("]") if heads else line.partition("=")
        name, known = name.strip(), tables if heads else here
        if not closed or not name.isidentifier() or name in known or (heads and not _ends(after)):
            return None
        known[name] = {} if heads else _plain_string(after.strip())
        if known[name] is None and name in _LOOKED_FOR:
            return None
        here = known[name] if heads else here
    return tables


def _plain_string(value: str) -> str | None:
    content, closed, after = value[1:].partition('"')
    return content if value[:1] == '"' and closed and "\\" not in content and _ends(after) else None


def _ends(rest: str) -> bool:
    return rest.strip()[:1] in ("", "#")


def _why_not(tables: Mapping[str, Any], beside: str) -> str:
    """What is wrong with the process of this file, in words; empty if it works."""
    if "data" not in tables:
        folder = os.path.join(beside, tables.get("coordinator", {}).get("out", COORDINATOR_OUT))
        return _unlocked(folder, f"the run in {folder}") or _without_pulse(folder)
    data_set = tables["data"].get("identity", "")
    home = party_home(tables["name"], tables.get("home", ""), beside)
    return _unlocked(os.path.join(home, "data", data_set), f"data set {data_set}")


def _unlocked(folder: str, named: str) -> str:
    lock = os.path.join(folder, LOCK)
    if not os.path.isfile(lock):
        return f"no process has worked on {named} yet"
    with open(lock, "rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)  # held for no longer than it takes to leave this block
        except BlockingIOError:
            return ""
    return f"no process works on {named}"


def _without_pulse(folder: str) -> str:
    try:
        with open(os.path.join(folder, PULSE), "rb") as opened:
            content = opened.read()
    except FileNotFoundError:
        return "it is about to begin or to end"
    (stamp,) = _STAMP.unpack(content) if len(content) == _STAMP.size else (0.0,)
    since = time.monotonic() - stamp
    return "" if 0 <= since <= _LONGEST else "its network has not moved for half a minute"
