"""Documents that were read and are in no corpus, counted by reason. It holds no word of any of them.

These are a party's own figures, or those of the machine that shares documents out; no coordinator is told of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

NO_TEXT = "without text"
NO_WORD = "without a word that the tokeniser keeps"
NOT_DEALT = "left over when documents were dealt out"
NOT_AGREED = "without an agreed word"


@dataclass(frozen=True)
class Dropped:
    """Documents that were read and are in no corpus: why, how many, and what was known of them."""

    reason: str
    documents: int
    party: str = ""
    label: str = ""
    date: str = ""


def counted(dropped: Iterable[Dropped], *, named: bool = False) -> list[dict[str, Any]]:
    """Documents by reason, and with `named` also by the party that would have held them."""
    several: Counter[tuple[str, str]] = Counter()
    for one in dropped:
        several[one.reason, one.party if named else ""] += one.documents
    return [
        {"reason": reason, "documents": documents} | ({"party": party} if party else {})
        for (reason, party), documents in sorted(several.items())
    ]
