"""Which words only one party has, as far as the rounds in which words were agreed on let somebody know it.

It reads lists and tables that were seen; of the training it knows nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from securetm.federation.questions import JOINT, WORDS
from securetm.leakage.adversary_view import AdversaryView
from securetm.leakage.parts.word_tables import CELLS, LIST, DecodedWords, listed, tabled
from securetm.leakage.reading import ANSWER, SEALED, TOTAL, ReadVector, party_vectors, totals

SOMEBODY = ""  # a party, but which one is not known


def own_lists(view: AdversaryView) -> Iterator[tuple[str, frozenset[str]]]:
    """Every party's words, from what it sent itself: a list, or a table that nothing hides."""
    if not view.seen.get(ANSWER) and not view.seen.get(SEALED):
        return
    for heard in party_vectors(view):
        if heard.round.question == WORDS:
            yield heard.party, listed({LIST: heard.blocks[LIST]})
        elif heard.round.question == JOINT:
            found = _read(heard, view, parties=1)
            yield heard.party, frozenset(found.words if found is not None else ())


def summed(view: AdversaryView) -> DecodedWords | None:
    """What the sum of all parties' tables names."""
    opened = [heard for heard in (totals(view) if TOTAL in view.seen else ()) if heard.round.question == JOINT]
    return _read(opened[0], view, len(view.public.members)) if opened else None


def owners(view: AdversaryView) -> Mapping[str, str]:
    """Words of exactly one party that helps nobody: whose they are, or that they are somebody's."""
    lists = {name: words for name, words in own_lists(view) if words}
    table = summed(view)
    held = Counter(word for words in lists.values() for word in words)
    known = {word: name for name, words in lists.items() for word in words if held[word] == 1}
    alone = table.words if table is not None else ()
    times = table.parties if table is not None else ()
    told = {word: SOMEBODY for word, n in zip(alone, times, strict=True) if n == 1} | known
    helped = frozenset().union(*(words_of(one.documents, view.vocabulary()) for one in view.insiders))
    helpers = {one.name for one in view.insiders}
    left = [name for name in view.public.members if name not in helpers]
    only = left[0] if len(left) == 1 else SOMEBODY
    return {word: name or only for word, name in told.items() if word not in helped and name not in helpers}


def words_of(documents: Any, vocabulary: tuple[str, ...]) -> frozenset[str]:
    """The words that these documents, in the agreed words, really have."""
    there = np.flatnonzero(np.asarray(documents.counts.sum(axis=0)).ravel())
    return frozenset(vocabulary[word] for word in there)


def _read(heard: ReadVector, view: AdversaryView, parties: int) -> DecodedWords | None:
    if CELLS not in heard.blocks:
        return None
    whole = {name: np.rint(np.asarray(block)).astype(np.int64) for name, block in heard.blocks.items()}
    return tabled(whole, view.public.plan.vocabulary.most_candidates, parties)
