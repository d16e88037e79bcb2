"""Which words parties named while they agreed on a list, and which party has each, from the lists and tables that were sent.

The protocol's own code reads lists and tables. It opens nothing sealed: it reads a masked table like any other, and random
numbers give no word. It reads nothing of the training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from securetm.auditing.adversary_view import AdversaryView
from securetm.auditing.reading import BY_PARTIES, TOTAL, ReadVector, party_vectors, totals
from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array
from securetm.federation.questions import JOINT, WORDS
from securetm.models.given_documents import BagOfWords
from securetm.models.model_errors import BadWordList, SketchTooSmall
from securetm.models.queries import merge_words
from securetm.models.word_sketch import WordSketch, words_in

UNKNOWN_PARTY = ""  # the party is not known
_CELLS, _LIST = "cells", "words"
_FREQUENCY = 1  # the column of a table's cells that sums how many documents hold their words


@dataclass(frozen=True)
class DecodedWords:
    """The words in a table: how many documents have each, and how many parties."""

    words: tuple[str, ...]
    documents: Array
    parties: Array


def owners(view: AdversaryView) -> Mapping[str, str]:
    """The words that exactly one party has, and that party, if it is known. Words of colluding parties are left out."""
    lists = {name: words for name, words in own_lists(view) if words}
    table = summed(view)
    held = Counter(word for words in lists.values() for word in words)
    known = {word: name for name, words in lists.items() for word in words if held[word] == 1}
    counted = zip(table.words, table.parties, strict=True) if table is not None else ()
    of_one = {word: UNKNOWN_PARTY for word, parties in counted if parties == 1} | known
    helped = frozenset().union(*(words_of(one.documents, view.vocabulary()) for one in view.insiders))
    honest = [name for name in view.public.members if name not in view.helpers]
    only = honest[0] if len(honest) == 1 else UNKNOWN_PARTY
    return {word: name or only for word, name in of_one.items() if word not in helped and name not in view.helpers}


def own_lists(view: AdversaryView) -> Iterator[tuple[str, frozenset[str]]]:
    """Each party's words by its own message: a list, or a table that nothing hides."""
    if not any(view.seen.get(channel) for channel in BY_PARTIES):
        return
    for vector in party_vectors(view):
        if vector.round.question == WORDS:
            yield vector.party, listed({_LIST: vector.blocks[_LIST]})
        elif vector.round.question == JOINT:
            found = _decoded(vector, view, parties=1)
            yield vector.party, frozenset(found.words if found is not None else ())


def summed(view: AdversaryView) -> DecodedWords | None:
    """The words in the sum of all parties' tables."""
    opened = [vector for vector in (totals(view) if TOTAL in view.seen else ()) if vector.round.question == JOINT]
    return _decoded(opened[0], view, len(view.public.members)) if opened else None


def words_of(documents: Any, vocabulary: tuple[str, ...]) -> frozenset[str]:
    """The words of the agreed list that these documents use."""
    there = np.flatnonzero(np.asarray(documents.counts.sum(axis=0)).ravel())
    return frozenset(vocabulary[word] for word in there)


def listed(blocks: Mapping[str, Array]) -> frozenset[str]:
    """The words of one party's list. A sealed message is no list, and names nothing."""
    try:
        return frozenset(merge_words(Answer(None, {"": blocks})))
    except BadWordList:
        return frozenset()


def _decoded(vector: ReadVector, view: AdversaryView, parties: int) -> DecodedWords | None:
    if _CELLS not in vector.blocks or vector.blocks[_CELLS].ndim != 2:  # sums of words behind noise are no table
        return None
    whole = {name: np.rint(np.asarray(block)).astype(np.int64) for name, block in vector.blocks.items()}
    return tabled(whole, view.public.plan.vocabulary.most_candidates, parties)


def tabled(blocks: Mapping[str, Array], most_words: int, parties: int) -> DecodedWords | None:
    """The words in a table of one party or in the sum of several tables; None where it cannot be decoded.

    The table shows how many parties added a word, which the protocol's decoder does not need. To find that number, the attack
    subtracts every word once and decodes the rest, which has the words of two or more parties, and so on.
    """
    try:
        words, _, documents = words_in(Answer(blocks))
    except SketchTooSmall:
        return None
    times, left = np.ones(len(words), dtype=np.int64), np.array(blocks[_CELLS], dtype=np.int64)
    left[:, _FREQUENCY] = 0
    place, still = {word: n for n, word in enumerate(words)}, words
    for _ in range(parties - 1):
        left = left - _once(still, most_words)
        still = words_in(Answer({**blocks, _CELLS: left}))[0]
        times[[place[word] for word in still]] += 1
    return DecodedWords(words, documents, times)


def _once(words: tuple[str, ...], most_words: int) -> Array:
    """The cells of the table of one party that has these words, without their frequencies."""
    sketch = WordSketch(most_words)
    clipped_sum = ClippedRowSum(sketch.terms)
    each_once = sparse.csr_array(np.ones((1, len(words)), dtype=np.int64))
    document: Any = BagOfWords(each_once, words, np.zeros(1, dtype=np.uint64))
    sketch.answer(document, clipped_sum, {}, np.random.default_rng(0))
    cells = np.array(clipped_sum.blocks()[_CELLS], dtype=np.int64)
    cells[:, _FREQUENCY] = 0
    return cells
