"""What a worker of a bench computes in a test of workers: the module imports nothing, so that a worker starts at once."""

from __future__ import annotations

from typing import Any


def squared(key: dict[str, Any]) -> dict[str, Any]:
    """A row for a number."""
    return {"square": key["n"] ** 2}
