"""The union of the parties' words with their document frequencies, from one sum: an invertible Bloom lookup table.

Each party adds its words to hashed cells; the summed cells of all parties are peeled into the union. Whoever opens the sum
learns every word of the union, and in how many parties and documents it occurs, but not in which parties. The union is exact,
or decoding reports that the table was too small (Goodrich and Mitzenmacher 2011).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from securetm.contracts import Answer, Array, Block, Domain, Terms
from securetm.data_classes import dataclass
from securetm.errors import SecuretmError
from securetm.models.questions.words import MOST_WORDS, NamesWords, sendable, total_of


class SketchTooSmall(SecuretmError):
    """the parties have more words together than the plan allows for ({left} cells could not be read)"""

    left: int
    hint = "raise vocabulary.most_candidates in the plan, or let every party leave out its rarest words"


LONGEST = 40  # bytes of UTF-8; longer words are left out
HASHES = 3  # cells of each word: peeling then succeeds while there are at most 0.81 words a cell
CELLS_PER_WORD = 1.5
_LIMBS = LONGEST // 2  # a word as 16-bit numbers, so that sums over thousands of parties fit into 32 bits
_COUNT, _FREQUENCY, _CHECK, _WORD = 0, 1, 2, 4
WIDTH = _WORD + _LIMBS


@dataclass(frozen=True)
class WordSketch(NamesWords):
    """Asks for the party's words, their document frequencies and its number of documents, as a Bloom lookup table."""

    most_words: int
    counted: bool = True  # whether the number of documents goes with it; under a privacy budget nothing goes that is not paid

    @property
    def cells(self) -> int:
        """Cells of the table, in equal parts for each hash."""
        return HASHES * max(1, -(-int(CELLS_PER_WORD * self.most_words) // HASHES))

    @property
    def terms(self) -> Terms:
        """One row per party: its table. Noise cannot protect a table; a mechanism selects the words before they enter it."""
        layout = (Block("documents", (1,)), Block("cells", (self.cells, WIDTH)))
        return Terms(layout, data_only=True, names_words=True, domain=Domain.INTEGER, bits=32)

    def row(self, words: Sequence[str], counts: Array, documents: int) -> Array:
        held = [(word, int(n)) for word, n in zip(words, counts, strict=True) if n > 0 and fits(word)]
        entries = np.zeros((len(held), WIDTH), dtype=np.int64)  # a row a word: 1, its frequency, its check in two limbs, itself
        if held:
            entries[:, _WORD:] = packed([word for word, _ in held])
            entries[:, _COUNT], entries[:, _FREQUENCY] = 1, [n for _, n in held]
            entries[:, _CHECK], entries[:, _CHECK + 1] = _check(entries)
        row = np.zeros((1, 1 + self.cells * WIDTH), dtype=np.int64)
        row[0, 0] = documents if self.counted else 0
        table = row[0, 1:].reshape(self.cells, WIDTH)  # a view
        for places in _places(entries, self.cells):
            np.add.at(table, places, entries)
        return row


def words_in(answer: Answer) -> tuple[tuple[str, ...], int, Array]:
    """The union, the number of documents, and in how many of them each word occurs; words alphabetically."""
    total = total_of(answer)
    found = _peeled(np.array(total["cells"], dtype=np.int64))
    words = sorted((bytes(limbs.astype("<u2").tobytes()).rstrip(b"\0").decode("utf-8"), int(n)) for n, limbs in found)
    return tuple(word for word, _ in words), int(total["documents"][0]), np.array([n for _, n in words], dtype=np.int64)


def fits(word: str) -> bool:
    """Whether a word can be in a table: it may be sent, and its bytes are not too many."""
    return sendable(word) and len(word.encode()) <= LONGEST


def packed(words: Sequence[str]) -> Array:
    """One row a word: its bytes as 16-bit numbers."""
    whole = b"".join(word.encode().ljust(LONGEST, b"\0") for word in words)
    return np.frombuffer(whole, dtype="<u2").reshape(len(words), _LIMBS)


def mixed(limbs: Array, salt: int) -> Array:
    """A public 64-bit hash of each word's limbs."""
    state = np.full(len(limbs), salt, dtype=np.uint64)
    for limb in limbs.T.astype(np.uint64):
        state = (state ^ limb) * np.uint64(0xFF51AFD7ED558CCD)
        state ^= state >> np.uint64(29)
        state *= np.uint64(0xC4CEB9FE1A85EC53)
        state ^= state >> np.uint64(32)
    return state


def _check(entries: Array) -> tuple[Array, Array]:
    hashed = mixed(entries[:, _WORD:], 7)
    return (hashed & np.uint64(0xFFFF)).astype(np.int64), ((hashed >> np.uint64(16)) & np.uint64(0xFFFF)).astype(np.int64)


def _places(entries: Array, cells: int) -> list[Array]:
    """Each word's cells, one in each part of the table."""
    part = cells // HASHES
    return [
        number * part + (mixed(entries[:, _WORD:], number + 1) % np.uint64(part)).astype(np.int64) for number in range(HASHES)
    ]


def _peeled(table: Array) -> list[tuple[int, Array]]:
    """Takes out every word that is alone in a cell, again and again, until the table is empty."""
    found: list[tuple[int, Array]] = []
    while (table != 0).any():
        alone = _alone(table)
        if not len(alone) or len(found) > MOST_WORDS:
            raise SketchTooSmall(int((table[:, _COUNT] != 0).sum()))
        _, first = np.unique(alone[:, _WORD:], axis=0, return_index=True)
        words = alone[first]
        single = words // words[:, [_COUNT]]
        for places in _places(single, len(table)):
            np.subtract.at(table, places, words)
        found.extend((int(word[_FREQUENCY]), single[n, _WORD:]) for n, word in enumerate(words))
    return found


def _alone(table: Array) -> Array:
    """The cells that hold one word only, from any number of parties: each sum is that number times the word's entry."""
    held = np.flatnonzero(table[:, _COUNT] > 0)
    cells = table[held]
    single, rest = np.divmod(cells[:, _CHECK:], cells[:, [_COUNT]])
    whole = (rest == 0).all(axis=1) & (single >= 0).all(axis=1) & (single < 1 << 16).all(axis=1)
    held, cells = held[whole], cells[whole]
    ones = cells // np.maximum(cells[:, [_COUNT]], 1)
    low, high = _check(ones)
    at_home = np.any([places == held for places in _places(ones, len(table))], axis=0) if len(held) else np.zeros(0, bool)
    found: Array = cells[(low == ones[:, _CHECK]) & (high == ones[:, _CHECK + 1]) & at_home]
    return found
