"""Where organisations keep their homes, unless somebody names another place. A probe of health reads it: little is imported."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

COORDINATOR_OUT = "federation"  # the folder of a coordinator's run, beside its plan


def data_home() -> Path:
    from pathlib import Path

    return Path(_data_home())


def party_home(name: str, named: str, beside: str | Path) -> str:
    """The home of a party: the one that its PARTY.toml names, seen from where the file lies, or the usual one."""
    if named:
        return os.path.join(beside, os.path.expanduser(named))
    import re

    return os.path.join(_data_home(), re.sub(r"[^A-Za-z0-9._-]+", "-", name))


def _data_home() -> str:
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "securetm")
