"""What a party keeps of what it paid for: its last answer to each question, and noise that it draws once.

Asked again, it gives the same released value, which costs nothing. All of it is on disk before an answer leaves.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from securetm.accounting.ledger import Ledger
from securetm.aggregation.vectors import pack_vector, unpack_vector, wire_type
from securetm.contracts import PART, Array, State, Store, Terms
from securetm.errors import Failed
from securetm.federation.store import PartyStore, read_arrays, write_arrays

_VECTOR, _MEMORY, _SURPLUS = "vector", "memory/", "surplus"


@dataclass(frozen=True)
class KeptAnswer:
    """An answer as it was paid for, before anything masks or encrypts it."""

    asked: tuple[str, int, str, str]  # question, number, and in hex whom and what about
    vector: bytes
    memory: Mapping[str, Array]  # of the training, after it
    surplus: tuple[bytes, ...] = field(default=(), repr=False)  # what reveals the noise in it that a large sum does not need

    @classmethod
    def last(cls, store: PartyStore, question: str) -> Self | None:
        """Returns the last answer to that question that was kept. A damaged one is refused, and not computed anew."""
        path = _file(store, question)
        if not path.is_file():
            return None
        arrays, facts = read_arrays(path)
        name, number, members, about = facts["asked"]
        surplus = arrays[_SURPLUS].tobytes() if _SURPLUS in arrays else b""
        parts = tuple(surplus[start : start + PART] for start in range(0, len(surplus), PART))
        return cls((name, number, members, about), arrays[_VECTOR].tobytes(), _memory_in(arrays), parts)

    @staticmethod
    def memories(store: PartyStore) -> Iterator[Mapping[str, Array]]:
        """Returns what came with each answer that is kept."""
        for path in sorted(store.folder.glob(_file(store, "*").name)):
            yield _memory_in(read_arrays(path)[0])

    @staticmethod
    def keep(
        store: PartyStore, asked: tuple[str, int, bytes, bytes], vector: bytes, memory: State, surplus: Sequence[bytes] = ()
    ) -> None:
        """Writes the answer to disk in the place of the one before, or leaves that one whole."""
        question, number, members, about = asked
        arrays = {_VECTOR: np.frombuffer(vector, np.uint8), **{_MEMORY + name: array for name, array in memory.items()}}
        if surplus:
            arrays[_SURPLUS] = np.frombuffer(b"".join(surplus), np.uint8)
        write_arrays(_file(store, question), arrays, {"asked": [question, number, members.hex(), about.hex()]})

    def is_to(self, question: str, number: int, members: bytes, about: bytes) -> bool:
        """Whether it is the answer to that very question."""
        return self.asked == (question, number, members.hex(), about.hex())


def _memory_in(arrays: State) -> dict[str, Array]:
    return {name.removeprefix(_MEMORY): array for name, array in arrays.items() if name.startswith(_MEMORY)}


def _file(store: PartyStore, question: str) -> Path:
    return store.folder / f"kept-{question}.safetensors"


_FAST = 1  # zeros deflate at any level


def stored(vector: State, terms: Terms) -> bytes:
    """Returns the bytes to keep. Those of a vector without a fixed length stay as they are."""
    whole = pack_vector(vector, terms)
    short = whole if terms.ragged else zlib.compress(whole, _FAST)
    return min(whole, short, key=len)  # of two as long the vector itself: that is how its length is read


def read_stored(kept: bytes, terms: Terms, owner: str) -> State:
    """Returns the vector in these bytes: bytes that have its length are the vector itself."""
    length = terms.size * wire_type(terms).itemsize
    whole = kept if terms.ragged or len(kept) >= length else zlib.decompressobj().decompress(kept, length)
    return unpack_vector(whole, terms, owner)


_PAID = struct.Struct(">32sQ32s")  # which ledger, how many entries it had, and the digest that commits to them
_DRAWN = "drawn once: "  # in the store, beside what the party signed of other ledgers


@dataclass
class KeptNoise:
    """A lasting store (contracts.RoundContext) that takes and returns only noise that this ledger paid for."""

    store: Store
    ledger: Ledger
    paid: bool = False  # whether the answer under way was charged for noise that is drawn once

    def get(self, key: str) -> bytes | None:
        """Returns what was drawn under that name. Refuses if the ledger was put back to before the payment."""
        stored = self.store.get(self._name(key))
        if stored is None:
            return None
        ledger, count, head = _PAID.unpack(stored[: _PAID.size])
        if ledger != self.ledger.identity:  # another ledger paid for it
            return None
        self.ledger.check_against(count, head)
        return stored[_PAID.size :]

    def put(self, key: str, value: bytes) -> None:
        """Writes the noise to disk before it returns, bound to the entry that paid for it."""
        if not self.paid:
            raise Failed(
                "noise was to be drawn before it was charged",
                hint="a mechanism that draws once must remember what it drew, for the documents that reach it",
            )
        count, head = self.ledger.head
        self.store.put(self._name(key), _PAID.pack(self.ledger.identity, count, head) + value)

    def _name(self, key: str) -> str:
        return f"{_DRAWN}{self.ledger.identity.hex()} {key}"
