"""The last answer to each question that a budget paid for. Asked again, it is the same released value, and costs nothing.

One file for each question, on disk before the answer leaves. What the model remembers after the answer is in it, so that the
next answer follows from this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from securetm.contracts import PART, Array, State
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
    def of(cls, store: PartyStore, question: str) -> Self | None:
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
