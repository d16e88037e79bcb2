"""Words in noised sums over all parties: every document adds its words to hashed cells, as one row of l2 norm 1.

Each word adds plus or minus the same number to a few cells of a public table, so a sum of rows holds every word's weight. The
cells are public, and so is their number: which of them hold anything depends on noise. No party names a word. The question is
asked several times. From the second time on it says which words are open: those that earlier sums showed well enough add
nothing more, nor do those that hardly can be found, so the words between them get the whole row. Nothing is looked up here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from securetm.contracts import Array, Block, ClippedSum, Documents, Memory, State, Terms
from securetm.models.queries import present
from securetm.models.word_sketch import fits, mixed, packed

ROUNDS = 3  # how often the question is asked, each time with an equal part of the budget of the words
CELLS = 1 << 18
PLACES = 8  # cells of each word
OPEN = "open"  # the array of a state that says which words are open
OPEN_BYTES = 1 << 18
_OPEN_BITS = 3  # of each word; all of them are set where it is open. Of a closed word they are so by chance, hardly ever
_ROOM = 1.0 - 2.0**-30  # for rounding, so that no row is longer than 1
_AT_ONCE = 4096  # documents whose rows are made at once
_SALT = 0x9E3779B97F4A7C15  # its multiples differ in more bits than two letters of a word can


@dataclass(frozen=True, eq=False)
class WordSums:
    """Asks for the sum of one row per document: its open words in hashed cells, scaled to an l2 norm of 1.

    A document with few open words gives each of them more weight, and none weighs more than another document does in all.
    """

    open_words: Array | None = field(default=None, repr=False)  # bits, in bytes; None: every word is open

    @property
    def terms(self) -> Terms:
        """One row per document. A mechanism gives the words' noise, which is another than that of the training."""
        layout = (Block("cells", (CELLS,)),)
        return Terms(layout, counts_words=True, part=1 / ROUNDS, bits=64, l2=1.0, linf=1.0)

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Adds the documents' rows. The entries before the scale are whole numbers, so no order of words changes a bit."""
        held, cells = present(documents.counts), self._table(documents.vocabulary)
        step = max(1, len(documents)) if documents.persons is not None else _AT_ONCE  # a person's rows are bounded together
        for first in range(0, len(documents), step):
            rows = sparse.csr_array(held[first : first + step] @ cells)
            rows.sum_duplicates()
            squares = np.add.reduceat(np.append(rows.data**2, 0), rows.indptr[:-1]) * (np.diff(rows.indptr) > 0)
            scale = _ROOM / np.sqrt(np.maximum(squares, 1))
            scaled = rows.data * np.repeat(scale, np.diff(rows.indptr))
            owners = np.arange(first, first + rows.shape[0])
            clipped_sum.add(sparse.csr_array((scaled, rows.indices, rows.indptr), rows.shape), owners)

    def _table(self, words: Sequence[str]) -> sparse.csr_array:
        """One row a word: its signs in its cells. A word that is closed, or does not fit, has no cell."""
        fitting = np.array([n for n, word in enumerate(words) if fits(word)], dtype=np.int64)
        limbs = packed([words[n] for n in fitting])
        there = np.ones(len(fitting), dtype=bool) if self.open_words is None else open_among(self.open_words, limbs)
        places, signs = places_of(limbs[there])
        shape = (len(words), CELLS)
        return sparse.csr_array((signs.ravel(), (np.repeat(fitting[there], PLACES), places.ravel())), shape=shape)


def places_of(limbs: Array) -> tuple[Array, Array]:
    """The cells of each packed word and the sign with which it adds to each: public hashes of the word alone."""
    hashed = np.column_stack([mixed(limbs, _SALT * number % (1 << 64)) for number in range(1, PLACES + 1)])
    return (hashed >> np.uint64(40)).astype(np.int64) % CELLS, ((hashed & np.uint64(1)).astype(np.int64) * 2 - 1)


def opening(limbs: Array) -> State:
    """What the question is about where these packed words are open: a Bloom filter, of the same size whichever they are."""
    return filtering(bits_of(limbs))


def filtering(bits_of_open: Array) -> State:
    """The same by the words' bits."""
    bits = np.zeros(OPEN_BYTES * 8, dtype=bool)
    bits[bits_of_open] = True
    return {OPEN: np.packbits(bits)}


def open_among(filtered: Array, limbs: Array) -> Array:
    """Which of these packed words are open."""
    return all_set(filtered, bits_of(limbs))


def all_set(filtered: Array, bits: Array) -> Array:
    """The same by the words' bits."""
    return np.asarray(np.unpackbits(filtered)[bits].all(axis=1))


def bits_of(limbs: Array) -> Array:
    """The bits of each packed word in the filter of open words: parts of one public hash."""
    hashed = mixed(limbs, _SALT * (PLACES + 1) % (1 << 64))
    parts = np.arange(_OPEN_BITS, dtype=np.uint64) * np.uint64(21)
    return np.asarray((hashed[:, None] >> parts).astype(np.int64) % (OPEN_BYTES * 8))
