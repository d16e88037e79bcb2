"""The memory of one session, or of one set-up in it, in a role's store. It never returns values of another session."""

from __future__ import annotations

from typing import TypeVar

from securetm.contracts import Store
from securetm.data_classes import dataclass
from securetm.errors import Malformed
from securetm.extras import msgspec

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class SessionMemory:
    """Values in a store, each after the hash of the session and set-up that it belongs to."""

    store: Store
    owner: bytes

    def get(self, key: str) -> bytes | None:
        """Returns the value, if it is of this session."""
        stored = self.store.get(key)
        return stored[len(self.owner) :] if stored is not None and stored.startswith(self.owner) else None

    def put(self, key: str, value: bytes) -> None:
        """Writes the value to disk before it returns."""
        self.store.put(key, self.owner + value)

    def load(self, key: str, kind: type[Kept]) -> Kept | None:
        """What was saved there, if it is of this session."""
        stored = self.get(key)
        return None if stored is None else unpacked(stored, kind)

    def save(self, key: str, value: object) -> None:
        """Puts numbers, bytes, lists, tables or dataclasses of such."""
        self.put(key, msgspec.msgpack.encode(value))

    def of(self, part: bytes) -> SessionMemory:
        return SessionMemory(self.store, self.owner + part)


def unpacked(stored: bytes, kind: type[Kept]) -> Kept:
    """What was saved. Refuses what another version of the software saved in another form."""
    try:
        return msgspec.msgpack.decode(stored, type=kind)
    except msgspec.MsgspecError as problem:
        raise Malformed("this role's own memory", "another version of securetm wrote it; begin a new run") from problem


def count_up(store: Store, key: str, more: int) -> None:
    """Run by a party: adds to a count in its own store, which no other role sees."""
    if more:
        store.put(key, (int.from_bytes(store.get(key) or b"") + more).to_bytes(8))
