"""Documents that were read and are in no corpus, counted by reason. It holds no word of any of them.

These figures stay with a party, or with the machine that divides documents among parties. No coordinator gets them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

NO_TEXT = "without text"
NO_WORD = "without a word that the tokeniser keeps"
NOT_AGREED = "without an agreed word"


@dataclass(frozen=True)
class Dropped:
    """Documents that were read and are in no corpus: the reason, their number, and their columns."""

    reason: str
    documents: int
    party: str = ""
    label: str = ""
    date: str = ""


def counted(dropped: Iterable[Dropped], *, named: bool = False) -> list[dict[str, Any]]:
    """Documents by reason; with `named` also by the party that they name."""
    several: Counter[tuple[str, str]] = Counter()
    for one in dropped:
        several[one.reason, one.party if named else ""] += one.documents
    return [
        {"reason": reason, "documents": documents} | ({"party": party} if party else {})
        for (reason, party), documents in sorted(several.items())
    ]
