"""What workers compute in tests of them: the module imports little, so that a worker starts at once."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any


def squared(key: dict[str, Any]) -> dict[str, Any]:
    """A row for a number."""
    return {"square": key["n"] ** 2}


def looked_in(key: dict[str, Any]) -> dict[str, Any]:
    """Where a worker looks for corpora."""
    from lab.research_corpora import chosen_folder

    return {"folder": str(chosen_folder())}


def endless(key: dict[str, Any]) -> dict[str, Any]:
    """Says which process it is, and never ends."""
    Path(key["tells"]).write_text(str(os.getpid()))
    threading.Event().wait()
    return {}
