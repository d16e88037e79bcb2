"""Documents with noise in place of their words: a model reads weights of words, slot by slot. It draws no secret.

No attribute and no method tells which word a slot held.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array
from securetm.corpus.blocks import HeldInBlocks
from securetm.data_classes import dataclass
from securetm.errors import CountsNotWhole, Mistake
from securetm.extras import sparse
from securetm.mechanisms.slot_noise import SlotNoise, shuffled

KEPT = 16.0  # weights of a slot, on average, up to which they are stored; beyond it they are drawn again when they are needed
_DENSE = 1 << 23  # entries of a table of documents and words that is summed at once
_SLOTS = 1 << 10  # read at once while summing


class StoredSlots:
    """Weights that are kept. The words that they were made from are forgotten."""

    def __init__(self, ends: Array, words: Array, weights: Array, *, whole: bool) -> None:
        self._ends, self._words, self._weights = ends, words, weights
        self.whole = whole  # whether all weights are whole numbers

    def __len__(self) -> int:
        return len(self._ends) - 1

    def between(self, first: int, last: int) -> tuple[Array, Array, Array]:
        """Where each slot's weights begin and the last one's end, their words (rising in each slot), and the weights."""
        ends = self._ends[first : last + 1]
        part = slice(int(ends[0]), int(ends[-1]))
        return ends - ends[0], self._words[part], self._weights[part]

    def taken(self, slots: Array) -> StoredSlots:
        """These slots, in this order."""
        lengths = np.diff(self._ends)[slots]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        where = np.arange(ends[-1]) + np.repeat(self._ends[slots] - ends[:-1], lengths)
        return StoredSlots(ends, self._words[where], self._weights[where], whole=self.whole)


class RegeneratedSlots:
    """Weights that are drawn again at each use, always the same. It keeps the words for that alone."""

    def __init__(self, law: SlotNoise, secret: bytes, words: Array, numbers: Array | None = None) -> None:
        self._law, self._secret, self._words, self.whole = law, secret, words, law.whole
        self._numbers = np.arange(len(words)) if numbers is None else numbers  # of the slots in the corpus that was noised

    def __len__(self) -> int:
        return len(self._words)

    def between(self, first: int, last: int) -> tuple[Array, Array, Array]:
        """Where each slot's weights begin and the last one's end, their words (rising in each slot), and the weights."""
        numbers = self._numbers[first:last]
        begins = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)  # of stretches that also follow one another in the corpus
        if len(begins) <= 1:
            return self._law.draw(self._secret, self._words[first:last], int(numbers[0]) if len(numbers) else 0)
        stretches = zip(begins, np.append(begins[1:], len(numbers)), strict=True)
        parts = [self._law.draw(self._secret, self._words[first + a : first + b], int(numbers[a])) for a, b in stretches]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.diff(ends) for ends, _, _ in parts]))])
        return ends, np.concatenate([words for _, words, _ in parts]), np.concatenate([weights for _, _, weights in parts])

    def taken(self, slots: Array) -> RegeneratedSlots:
        """These slots, in this order, with the noise they have."""
        return RegeneratedSlots(self._law, self._secret, self._words[slots], self._numbers[slots])


@dataclass(frozen=True, eq=False, repr=False)
class PerturbedDocuments(HeldInBlocks):
    """Documents (contracts.Documents) as sums of noised slots. Lengths are what they were: they are public in this guarantee.

    They have no embeddings, which were made from the words, and no persons, whom this guarantee does not cover.
    """

    perturbed: StoredSlots | RegeneratedSlots
    vocabulary: tuple[str, ...]
    keys: Array
    token_ends: Array
    sentence_ends: Array | None = None
    tokens: None = None
    embeddings: None = None
    persons: None = None
    block_numbers: Array | None = None

    @classmethod
    def of(cls, documents: Any, law: SlotNoise, secret: bytes) -> Self:
        """Run by a party: its documents behind the noise that this secret gives."""
        words, ends = slots_of(documents, secret)
        sentence_ends = None if documents.tokens is None else documents.sentence_ends
        perturbed: StoredSlots | RegeneratedSlots = RegeneratedSlots(law, secret, words)
        if law.whole and law.expected <= KEPT:
            perturbed = StoredSlots(*law.draw(secret, words, 0), whole=True)
        numbers = documents.block_numbers
        return cls(perturbed, tuple(documents.vocabulary), documents.keys, ends, sentence_ends, block_numbers=numbers)

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<PerturbedDocuments: {len(self)} documents, {len(self.perturbed)} slots, {len(self.vocabulary)} words>"

    @cached_property
    def counts(self) -> Any:
        """The sum of each document's slots. Where weights are many, so is this: models read slots instead."""
        at_once = max(1, _DENSE // max(len(self.vocabulary), 1))
        shape, blocks = (len(self), len(self.vocabulary)), range(0, len(self), at_once)
        tables = [self._summed(first, min(first + at_once, len(self))) for first in blocks]
        return sparse.vstack(tables, format="csr") if tables else sparse.csr_array(shape)

    def select(self, rows: Array) -> Self:
        """The documents with these row numbers, in that order; or those where a Boolean mask is true. Noise stays as it is."""
        rows = np.asarray(rows)
        wanted = np.flatnonzero(rows) if rows.dtype == np.bool_ else np.arange(len(self))[rows.astype(np.int64)]
        lengths = np.diff(self.token_ends, prepend=0)[wanted]
        ends = np.cumsum(lengths).astype(np.int64)
        slots = np.arange(int(lengths.sum())) + np.repeat(self.token_ends[wanted] - ends, lengths)
        sentence_ends = None
        if self.sentence_ends is not None:
            last = np.zeros(len(self.perturbed), dtype=bool)  # whether a slot is a sentence's last one
            last[np.asarray(self.sentence_ends) - 1] = True
            sentence_ends = np.flatnonzero(last[slots]) + 1
        numbers = None if self.block_numbers is None else self.block_numbers[wanted]
        taken = self.perturbed.taken(slots)
        return type(self)(taken, self.vocabulary, self.keys[wanted], ends, sentence_ends, block_numbers=numbers)

    def halves(self, seed: int) -> tuple[Self, Self]:
        """Refused: the weights of slots cannot be split into two halves of words."""
        raise Mistake(
            "these documents are behind noise, so their words cannot be split into a known half and one to predict",
            hint="judge the model by documents whose words are known",
        )

    def _summed(self, first: int, last: int) -> Any:
        begins = np.concatenate([np.zeros(1, np.int64), self.token_ends])
        table = np.zeros((last - first, len(self.vocabulary)))
        for begin in range(int(begins[first]), int(begins[last]), _SLOTS):
            end = min(begin + _SLOTS, int(begins[last]))
            rows = np.searchsorted(self.token_ends, np.arange(begin, end), side="right") - first
            _add_up(rows, *self.perturbed.between(begin, end), table)
        return sparse.csr_array(table)


@njit(cache=True, nogil=True)
def _add_up(documents: Array, ends: Array, ids: Array, weights: Array, out: Array) -> None:
    """Adds each slot's weights to the row of its document."""
    for slot in range(len(documents)):
        for i in range(ends[slot], ends[slot + 1]):
            out[documents[slot], ids[i]] += weights[i]


def slots_of(documents: Any, secret: bytes) -> tuple[Array, Array]:
    """The word of every slot and where each document's slots end.

    Where the order of words is not known, any fixed order of counts would betray a word by its neighbours: with one occurrence
    less, those behind it move up, and many slots differ instead of one. So the secret orders them.
    """
    if documents.tokens is not None:
        return np.asarray(documents.tokens, dtype=np.int32), np.asarray(documents.token_ends, dtype=np.int64)
    table = canonical(documents.counts)
    words = np.repeat(table.indices, table.data.astype(np.int64)).astype(np.int32)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(table.data.astype(np.int64))])[table.indptr[1:]]
    return shuffled(secret, words, ends), ends


def canonical(counts: Any) -> Any:
    """The same counts in canonical form: equal tables are stored equally. Refuses numbers that are negative or not whole."""
    table = sparse.csr_array(counts, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    if table.nnz and (table.data.min() < 0 or (table.data != np.rint(table.data)).any()):
        raise CountsNotWhole()
    return table
