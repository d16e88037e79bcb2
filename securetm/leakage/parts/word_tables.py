"""Which words parties named while they agreed on a list, out of their lists and tables, read by the protocol's own code.

It opens nothing sealed: a masked table is read like any other, and what looks random gives no word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from securetm.clipped_sum import ClippedRowSum
from securetm.contracts import Answer, Array
from securetm.models.model_errors import BadWordList, SketchTooSmall
from securetm.models.questions import merge_words
from securetm.models.word_sketch import WordSketch, words_in

CELLS, LIST = "cells", "words"
_FREQUENCY = 1  # the column of a table's cells that sums how many documents hold their words


@dataclass(frozen=True)
class DecodedWords:
    """Words that a table names: in how many documents each occurs, and in how many parties."""

    words: tuple[str, ...]
    documents: Array
    parties: Array


def listed(blocks: Mapping[str, Array]) -> frozenset[str]:
    """The words of one party's list; what is none, because somebody hid it, names nothing."""
    try:
        return frozenset(merge_words(Answer(None, {"": blocks})))
    except BadWordList:
        return frozenset()


def tabled(blocks: Mapping[str, Array], most_words: int, parties: int) -> DecodedWords | None:
    """The words in a table of one party or in the sum over several; None where it gives none up.

    The table itself says how many parties put a word in. The protocol's decoding does not ask for that; whoever takes every
    word out once and decodes what is left finds the words of two parties and more, and so on.
    """
    try:
        words, _, documents = words_in(Answer(blocks))
    except SketchTooSmall:
        return None
    times, left = np.ones(len(words), dtype=np.int64), np.array(blocks[CELLS], dtype=np.int64)
    left[:, _FREQUENCY] = 0
    place, still = {word: n for n, word in enumerate(words)}, words
    for _ in range(parties - 1):
        left = left - _once(still, most_words)
        still = words_in(Answer({**blocks, CELLS: left}))[0]
        times[[place[word] for word in still]] += 1
    return DecodedWords(words, documents, times)


@dataclass(frozen=True)
class _OneDocument:
    """A document of these words, once each, as a table is made of it."""

    vocabulary: tuple[str, ...]

    def __len__(self) -> int:
        return 1

    @cached_property
    def counts(self) -> Any:
        return sparse.csr_array(np.ones((1, len(self.vocabulary)), dtype=np.int64))


def _once(words: tuple[str, ...], most_words: int) -> Array:
    """The cells of a table that one party would make of these words, without their frequencies."""
    sketch = WordSketch(most_words)
    clipped_sum = ClippedRowSum(sketch.terms)
    document: Any = _OneDocument(words)
    sketch.answer(document, clipped_sum, {}, np.random.default_rng(0))
    cells = np.array(clipped_sum.blocks()[CELLS], dtype=np.int64)
    cells[:, _FREQUENCY] = 0
    return cells
