"""What a role remembers of one session, or of one set-up in it. What another session left in the same store is not found."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.contracts import Store


@dataclass(frozen=True)
class SessionMemory:
    """Values in a store, each behind the hash that names the session and set-up it belongs to."""

    store: Store
    owner: bytes

    def get(self, key: str) -> bytes | None:
        """What was kept there, if it is of this session."""
        stored = self.store.get(key)
        return stored[len(self.owner) :] if stored is not None and stored.startswith(self.owner) else None

    def put(self, key: str, value: bytes) -> None:
        """On disk before it returns."""
        self.store.put(key, self.owner + value)

    def of(self, part: bytes) -> SessionMemory:
        """The memory of one set-up in this session."""
        return SessionMemory(self.store, self.owner + part)
