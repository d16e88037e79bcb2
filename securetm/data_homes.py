"""Where organisations keep their homes, unless somebody names another place."""

from __future__ import annotations

import os
import re
from pathlib import Path

COORDINATOR_OUT = "federation"  # the folder of a coordinator's run, beside its plan


def data_home() -> Path:
    """The folder in which homes lie."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "securetm"


def party_home(name: str, named: str, beside: Path) -> Path:
    """The home of a party: the one that its PARTY.toml names, seen from where the file lies, or the usual one."""
    return beside / Path(named).expanduser() if named else data_home() / re.sub(r"[^A-Za-z0-9._-]+", "-", name)
