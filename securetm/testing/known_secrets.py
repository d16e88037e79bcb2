"""Secrets of ML-KEM that come again. The library draws them by itself, whatever seed a session has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey

from securetm.data_classes import dataclass, field
from securetm.sessions import hybrid


@dataclass
class KnownSecrets:
    """The secrets and ciphertexts for each key: the first ones again in every session, or each in its turn."""

    in_turn: bool = False
    told: dict[bytes, list[tuple[bytes, bytes]]] = field(default_factory=dict)
    _asked: Counter[bytes] = field(default_factory=Counter)

    def draw(self, key: MLKEM768PublicKey) -> tuple[bytes, bytes]:
        """What was told to this key before, or something new."""
        public = key.public_bytes_raw()
        known, number = self.told.setdefault(public, []), self._asked[public]
        self._asked[public] += self.in_turn
        if number == len(known):
            known.append(key.encapsulate())
        return known[number]

    @contextmanager
    def come_again(self) -> Iterator[None]:
        """Within it, nothing else is told. Turns begin anew."""
        honest = hybrid.draw_for
        self._asked.clear()
        hybrid.draw_for = self.draw
        try:
            yield
        finally:
            hybrid.draw_for = honest
