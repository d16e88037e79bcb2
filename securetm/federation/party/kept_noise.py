"""Noise that a party draws once, kept under the ledger that paid for it."""

from __future__ import annotations

import struct

from securetm.accounting.ledger import Ledger
from securetm.contracts import Store
from securetm.data_classes import dataclass
from securetm.errors import Failed

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
