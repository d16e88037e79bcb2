"""What of the documents that were read goes to no party, or is left out by one, and why. It holds counts, and no word of any.

These are a party's own figures, or those of the place that deals documents out; no coordinator is told of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from securetm.corpus.corpus import Corpus, Dropped

NO_TEXT = "without text"
NO_WORD = "without a word that the tokeniser keeps"
NOT_DEALT = "left over when documents were dealt out"
NOT_AGREED = "without an agreed word"
UNNAMED = "unnamed"


@dataclass(frozen=True)
class Dealing:
    """What became of the documents of one source that no party holds, and how many name no party."""

    nobodys: tuple[Dropped, ...] = ()
    without_a_party: int = 0
    unnamed: str = UNNAMED  # what the party is called that holds them


class Dealt(dict[str, Corpus]):
    """Who holds which documents, and what the dealing left over."""

    def __init__(self, parts: Mapping[str, Corpus], dealing: Dealing) -> None:
        super().__init__(parts)
        self.dealing = dealing


def left_out(corpora: Mapping[str, Corpus]) -> dict[str, Any]:
    """The same as plain facts: for the source, and for each party by its name."""
    dealing = corpora.dealing if isinstance(corpora, Dealt) else Dealing()
    dropped = {name: counted(corpus.dropped) for name, corpus in corpora.items()}
    whole = [*dealing.nobodys, *(one for corpus in corpora.values() for one in corpus.dropped)]
    read = sum(map(len, corpora.values())) + sum(one.documents for one in whole)
    source = {"read": read, "without_a_party": dealing.without_a_party, "unnamed": dealing.unnamed}
    return {"source": {**source, "dropped": counted(dealing.nobodys, named=True)}, "dropped": dropped}


def counted(dropped: Iterable[Dropped], *, named: bool = False) -> list[dict[str, Any]]:
    """Documents by reason, and by the party that would have held them where that is wanted."""
    several: Counter[tuple[str, str]] = Counter()
    for one in dropped:
        several[one.reason, one.party if named else ""] += one.documents
    return [
        {"reason": reason, "documents": documents} | ({"party": party} if party else {})
        for (reason, party), documents in sorted(several.items())
    ]


def without_any(corpora: Mapping[str, Corpus], words: Iterable[str]) -> dict[str, int]:
    """How many documents of each party have none of these words."""
    known = frozenset(words)
    found = {}
    for name, corpus in corpora.items():
        there = np.fromiter((word in known for word in corpus.vocabulary), np.int64, len(corpus.vocabulary))
        found[name] = int(np.sum(corpus.counts @ there == 0))
    return found
