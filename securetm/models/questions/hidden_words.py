"""Questions about words that the coordinator never sees: every word is hashed under a key that only the parties have.

A word falls into one of many public buckets, and into one of a few parts of its bucket: a cell. Whoever has no key sees in how
many documents the words of a bucket are, and of no word where it lies. Frequent buckets are asked about again. Exact sums then
show by two marks whether the documents of a cell hold one word only, which the parties can check and nobody else. Behind noise
nothing is checked, and nobody needs to name a word: each party finds the cells of its own words by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from securetm.contracts import Answer, Array, Block, ClippedSum, Documents, Domain, Memory, State, Terms, Unit
from securetm.data_classes import dataclass, field
from securetm.errors import Misuse
from securetm.extras import sparse
from securetm.models.questions.word_sketch import fits
from securetm.models.questions.word_sums import add_rows_of_length_1
from securetm.models.questions.words import NamesWords, presence_terms, present, total_of

KEY = 32  # bytes
PARTS = 16  # of a bucket
BUCKETS_PER_WORD = 40  # of as many words as the plan has room for: then few words share a bucket
FEWEST_BUCKETS, MOST_BUCKETS = 1 << 10, 1 << 24
OPEN, STAGE = "open", "stage"  # the arrays of a state
MOST_OPEN_A_WORD = 2  # buckets that are asked about again, for each word that the plan wants
_MARK = 30  # bits of a mark
_DOCUMENTS, _PARTIES, _MARKS = 0, 1, 2  # of a cell
WIDTH = 4
_LIMBS, _LIMB = 3, 18  # a party's sum of marks, below 2^54 for up to 2^24 documents, travels in limbs of so many bits each
_SENT = _MARKS + 2 * _LIMBS


class NoWordsKey(Misuse):
    """words are hashed under a key that the parties share, and there is none"""


def buckets_for(words: int, *, noised: bool) -> int:
    """How many buckets there are where the plan has room for so many words: a power of two.

    Half as many where each comes with noise: those take more bytes each, and noise hides more than a collision does.
    """
    wanted = max(FEWEST_BUCKETS, min(words * BUCKETS_PER_WORD, MOST_BUCKETS))
    return 1 << (int(wanted) - 1).bit_length() - noised


@dataclass(frozen=True, eq=False)
class HashedWords:
    """Where some words lie, and their marks: 24 bytes of a keyed hash of each word alone. A word too long lies nowhere."""

    places: Array  # of these words among those that were given
    buckets: Array
    parts: Array
    marks: Array  # two a word

    @property
    def cells(self) -> Array:
        return np.asarray(self.buckets * PARTS + self.parts)


@lru_cache(maxsize=2)
def hashed(words: tuple[str, ...], key: bytes, buckets: int) -> HashedWords:
    """Hashes words with BLAKE2b under this key. Without one, whoever guesses a word could check the guess."""
    if len(key) != KEY:
        raise NoWordsKey()
    fitting = [n for n, word in enumerate(words) if fits(word)]
    whole = b"".join(hashlib.blake2b(words[n].encode(), key=key, digest_size=24).digest() for n in fitting)
    numbers = np.frombuffer(whole, dtype="<u8").reshape(len(fitting), 3)
    marks = (numbers[:, 1:] & np.uint64((1 << _MARK) - 1)).astype(np.int64)
    found = numbers[:, 0] % np.uint64(buckets * PARTS)
    return HashedWords(
        np.array(fitting, dtype=np.int64),
        (found // np.uint64(PARTS)).astype(np.int64),
        (found % np.uint64(PARTS)).astype(np.int64),
        marks,
    )


def cell_name(cell: int) -> str:
    """The name under which the coordinator knows a column. The order of names is that of numbers."""
    return f"{cell:07x}"


def is_cell_name(name: str, buckets: int) -> bool:
    """Whether a column of so many buckets may have this name."""
    return len(name) == len(cell_name(0)) and not set(name) - set("0123456789abcdef") and int(name, 16) < buckets * PARTS


# ---- exact sums ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BucketFrequencies:
    """How many documents there are, and how many have a word in each bucket."""

    buckets: int
    key: bytes = field(default=b"", repr=False)  # the party's; the coordinator asks without it

    @property
    def terms(self) -> Terms:
        """A row of zeros and ones, so its bounds follow from its length."""
        layout = (Block("documents", (1,)), Block("buckets", (self.buckets,)))
        return presence_terms(layout, data_only=True, bits=32)

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        found = hashed(tuple(documents.vocabulary), self.key, self.buckets)
        held, one = present(documents.counts), sparse.csr_array(np.ones((len(documents), 1), np.int64))
        table = _table(found.places, found.buckets, (len(documents.vocabulary), self.buckets))
        clipped_sum.add(sparse.hstack([one, present(held @ table)], format="csr"), np.arange(len(documents)))


@dataclass(frozen=True, eq=False)
class CellMarks(NamesWords):
    """Of each cell of these buckets: its documents and parties, and twice the sum of the marks of the words in them.

    A document counts once for each of its words there. Of a cell with one word both sums are its documents times its marks.
    """

    buckets: int
    open_buckets: Array = field(repr=False)  # in rising order
    key: bytes = field(default=b"", repr=False)

    @property
    def terms(self) -> Terms:
        """One row per party. Without the key it names nothing; it follows from words that only parties know all the same."""
        layout = (Block("cells", (len(self.open_buckets) * PARTS, _SENT)),)
        return Terms(layout, names_words=True, domain=Domain.INTEGER, bits=32, unit=Unit.PARTY)

    def row(self, words: Sequence[str], counts: Array, documents: int) -> Array:
        found = hashed(tuple(words), self.key, self.buckets)
        often = np.asarray(counts)[found.places]
        places, is_open = cells_among(self.open_buckets, found)
        held = is_open & (often > 0)
        table = np.zeros((len(self.open_buckets) * PARTS, WIDTH), dtype=np.int64)
        np.add.at(table[:, _DOCUMENTS], places[held], often[held])
        table[np.unique(places[held]), _PARTIES] = 1
        for n in range(2):
            np.add.at(table[:, _MARKS + n], places[held], often[held] * found.marks[held, n])
        limbs = table[:, _MARKS:, None] >> (_LIMB * np.arange(_LIMBS)) & ((1 << _LIMB) - 1)
        return np.hstack([table[:, :_MARKS], limbs.reshape(len(table), -1)]).reshape(1, -1)


def cells_among(open_buckets: Array, found: HashedWords) -> tuple[Array, Array]:
    """The place of each word's cell among those of these buckets, and whether its bucket is one of them."""
    at = np.searchsorted(open_buckets, found.buckets)
    there = at < len(open_buckets)
    there[there] = open_buckets[at[there]] == found.buckets[there]
    return np.where(there, at * PARTS + found.parts, 0), there


def no_buckets(most: int, buckets: int) -> Array:
    """Room for so many buckets, under numbers that no word has: as large a question, about nothing."""
    return np.arange(buckets, buckets + most, dtype=np.int32)


def frequent_buckets(answer: Answer, most: int, least: int) -> tuple[Array, int]:
    """The most frequent buckets, which are asked about again, in rising order, and the number of documents.

    One that is in too many documents stays: several words may make it so.
    """
    total = total_of(answer)
    documents, often = int(total["documents"][0]), np.asarray(total["buckets"])
    fine = np.flatnonzero(often >= max(least, 1))
    order = np.lexsort((fine, -often[fine]))[:most]
    return np.sort(fine[order]).astype(np.int32), documents


@dataclass(frozen=True, eq=False)
class FoundCells:
    """The cells that become columns, in rising order, and what the sum showed of each."""

    cells: Array
    totals: Array  # a row a cell: documents, parties, and both sums of marks

    @classmethod
    def of(cls, answer: Answer, open_buckets: Array, most: int, least: int, most_documents: float, parties: int) -> FoundCells:
        """Those in enough documents, not too many, and at enough parties: of these the most frequent."""
        sent = np.asarray(total_of(answer)["cells"], dtype=np.int64)
        marks = (sent[:, _MARKS:].reshape(-1, 2, _LIMBS) << (_LIMB * np.arange(_LIMBS))).sum(axis=2)
        totals = np.hstack([sent[:, :_MARKS], marks])
        cells = (open_buckets.astype(np.int64)[:, None] * PARTS + np.arange(PARTS)).ravel()
        often = totals[:, _DOCUMENTS]
        fine = np.flatnonzero((often >= max(least, 1)) & (often <= most_documents) & (totals[:, _PARTIES] >= parties))
        chosen = np.sort(fine[np.lexsort((fine, -often[fine]))[:most]])
        return cls(cells[chosen], totals[chosen])

    def without(self, gone: Array) -> FoundCells:
        return FoundCells(self.cells[~gone], self.totals[~gone])

    def words_alone(self, words: Sequence[str], key: bytes, buckets: int) -> list[str]:
        """For each cell, which of these words is alone in it in all parties' documents; empty where none is."""
        found = hashed(tuple(words), key, buckets)
        at = np.searchsorted(self.cells, found.cells)
        there = at < len(self.cells)
        there[there] = self.cells[at[there]] == found.cells[there]
        alone = [""] * len(self.cells)
        for n in np.flatnonzero(there):
            documents, _, *marks = self.totals[at[n]].tolist()
            if marks == [documents * mark for mark in found.marks[n].tolist()]:
                alone[at[n]] = words[found.places[n]]
        return alone


# ---- noised sums ---------------------------------------------------------------------------------------------------

SHARES = (1 / 7, 2 / 7, 4 / 7)  # of the budget of the words, for each sum: chosen on three corpora, and judged on two
CUTS = (0.7, 1.8)  # deviations; after each sum, buckets that stand out less are closed
MOST_OPEN = (1 << 20, 1 << 16)  # after each sum
_GAINS = (1.0, 1.75, 2.5)  # how much heavier an open word is expected to be in each sum
_IN_LAST = 3.0  # deviations by which a cell stands out in the last sum, where the sums before it count
FALSE = 0.5  # cells that noise alone brings, on average


@dataclass(frozen=True, eq=False)
class BucketSums:
    """The sum of one row per document: its open words in buckets, and at last in cells, scaled to an l2 norm of 1."""

    buckets: int
    open_buckets: Array | None = field(default=None, repr=False)  # in rising order; None: all
    stage: int = 0
    key: bytes = field(default=b"", repr=False)

    @property
    def size(self) -> int:
        if self.open_buckets is None:
            return self.buckets
        return len(self.open_buckets) * (PARTS if self.stage == len(CUTS) else 1)

    @property
    def terms(self) -> Terms:
        """One row per document. A mechanism gives the words' noise, which is another than that of the training."""
        layout = (Block("cells", (self.size,)),)
        return Terms(layout, counts_words=True, part=SHARES[self.stage], bits=64, l2=1.0, linf=1.0)

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        found = hashed(tuple(documents.vocabulary), self.key, self.buckets)
        places, there = found.buckets, np.ones(len(found.buckets), dtype=bool)
        if self.open_buckets is not None:
            cells, there = cells_among(self.open_buckets, found)
            places = cells if self.stage == len(CUTS) else cells // PARTS
        table = _table(found.places[there], places[there], (len(documents.vocabulary), self.size))
        add_rows_of_length_1(present(documents.counts), table, documents, clipped_sum)


@dataclass
class BucketSearch:
    """Finds cells in one noised sum after the other. The coordinator runs it; it follows from noised sums alone."""

    buckets: int
    stage: int = 0
    about: State = field(default_factory=dict)  # of the next question
    _open: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    _tops: Array = field(default_factory=lambda: np.zeros(0))  # of each open bucket: evidence of all sums so far
    _precision: float = 0.0

    def take(self, answer: Answer) -> None:
        cells, deviation = np.asarray(total_of(answer)["cells"], dtype=np.float64), max(answer.deviation, 1e-9)
        weight = _GAINS[self.stage] / deviation**2
        if self.stage == len(CUTS):
            self._cells, self._deviation = cells, deviation
            return
        self._open = self._open if self.stage else np.arange(self.buckets)
        self._tops = (self._tops if self.stage else 0.0) + weight * cells
        self._precision += (_GAINS[self.stage] / deviation) ** 2
        stand = self._tops / np.sqrt(self._precision)
        kept = np.flatnonzero(stand > CUTS[self.stage])
        kept = np.sort(kept[np.argsort(-stand[kept], kind="stable")[: MOST_OPEN[self.stage]]])
        self._open, self._tops, self.stage = self._open[kept], self._tops[kept], self.stage + 1
        self.about = opened(self._open, self.buckets, self.stage)

    def found(self, most: int) -> tuple[Array, Array]:
        """The cells that stand out, in rising order, and their weights in rows of the last sum.

        The sums before the last one know buckets only: what they say goes to the heaviest cell of each, if it stands out.
        """
        last = self._cells.reshape(-1, PARTS)
        heaviest = last == last.max(axis=1, keepdims=True)
        gain = _GAINS[-1] / self._deviation
        alone = last / self._deviation
        together = (self._tops[:, None] + gain / self._deviation * last) / np.sqrt(self._precision + gain**2)
        # All cells were tried together, the open ones of them by the last sum alone.
        over = alone - required_of_cells(alone.size)
        counts = heaviest & (alone > _IN_LAST)
        over = np.where(counts, np.maximum(over, together - required_of_cells(self.buckets * PARTS)), over).ravel()
        chosen, stand = np.flatnonzero(over > 0), over
        chosen = np.sort(chosen[np.argsort(-stand[chosen], kind="stable")[:most]])
        weights = np.maximum(last.ravel()[chosen], self._deviation)
        return self._open[chosen // PARTS] * PARTS + chosen % PARTS, weights


def required_of_cells(cells: int) -> float:
    """By how many deviations one of so many cells must stand out."""
    from statistics import NormalDist  # with fractions and random numbers, which nobody else loads

    return -NormalDist().inv_cdf(min(FALSE / 2 / max(cells, 2), 0.5))


def opened(open_buckets: Array, buckets: int, stage: int) -> State:
    """What a later question is about: a bit for each bucket, and which sum it is."""
    bits = np.zeros(buckets, dtype=bool)
    bits[open_buckets] = True
    return {OPEN: np.packbits(bits), STAGE: np.array([stage], dtype=np.int64)}


def _table(places: Array, columns: Array, shape: tuple[int, int]) -> sparse.csr_array:
    """A row for each word, with a 1 in its column."""
    return sparse.csr_array((np.ones(len(places), dtype=np.int64), (places, columns)), shape=shape)
