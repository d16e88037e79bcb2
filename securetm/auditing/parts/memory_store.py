"""A store in memory (contracts.Store) for one use. Nothing of it is kept."""

from __future__ import annotations


class MemoryStore(dict[str, bytes]):
    """Values by key."""

    def put(self, key: str, value: bytes) -> None:
        """Sets a value."""
        self[key] = value
