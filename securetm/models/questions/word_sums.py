"""Words in noised sums over all parties: every document adds its words to hashed cells, as one row of l2 norm 1, and words of a
public list are looked up in the sums.

Each word adds plus or minus the same number to a few cells of a public table, so a sum of rows holds every word's weight. The
cells are public, and so is their number: which of them hold anything depends on noise. No party names a word. The question is
asked several times. From the second time on it says which words are open: those that earlier sums showed well enough add
nothing more, nor do those that hardly can be found, so the words between them get the whole row. A word that is on no public
list is not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Answer, Array, Block, ClippedSum, Documents, Memory, Rows, State, Terms
from securetm.data_classes import dataclass, field
from securetm.extras import sparse
from securetm.models.noisy_counts import likely_totals
from securetm.models.questions.word_sketch import fits, mixed, packed
from securetm.models.questions.words import present, total_of

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

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:
        add_rows_of_length_1(present(documents.counts), self._table(documents.vocabulary), documents, clipped_sum)

    def _table(self, words: Sequence[str]) -> sparse.csr_array:
        """One row a word: its signs in its cells. A word that is closed, or does not fit, has no cell."""
        fitting = np.array([n for n, word in enumerate(words) if fits(word)], dtype=np.int64)
        limbs = packed([words[n] for n in fitting])
        there = np.ones(len(fitting), dtype=bool) if self.open_words is None else open_among(self.open_words, bits_of(limbs))
        places, signs = places_of(limbs[there])
        shape = (len(words), CELLS)
        return sparse.csr_array((signs.ravel(), (np.repeat(fitting[there], PLACES), places.ravel())), shape=shape)


def add_rows_of_length_1(held: Rows, cells: Rows, documents: Documents, clipped_sum: ClippedSum) -> None:
    """Adds one row per document: the cells of its words, scaled to an l2 norm of 1.

    The entries before the scale are whole numbers, so no order of words changes a bit.
    """
    step = max(1, len(documents)) if documents.persons is not None else _AT_ONCE  # a person's rows are bounded together
    for first in range(0, len(documents), step):
        rows = sparse.csr_array(held[first : first + step] @ cells)
        rows.sum_duplicates()
        squares = np.add.reduceat(np.append(rows.data**2, 0), rows.indptr[:-1]) * (np.diff(rows.indptr) > 0)
        scale = _ROOM / np.sqrt(np.maximum(squares, 1))
        scaled = rows.data * np.repeat(scale, np.diff(rows.indptr))
        owners = np.arange(first, first + rows.shape[0])
        clipped_sum.add(sparse.csr_array((scaled, rows.indices, rows.indptr), rows.shape), owners)


def places_of(limbs: Array) -> tuple[Array, Array]:
    """The cells of each packed word and the sign with which it adds to each: public hashes of the word alone."""
    hashed = np.column_stack([mixed(limbs, _SALT * number % (1 << 64)) for number in range(1, PLACES + 1)])
    return (hashed >> np.uint64(40)).astype(np.int64) % CELLS, ((hashed & np.uint64(1)).astype(np.int64) * 2 - 1)


def opening(bits: Array) -> State:
    """What the question is about where words with these bits are open: a Bloom filter, of the same size whichever they are."""
    filtered = np.zeros(OPEN_BYTES * 8, dtype=bool)
    filtered[bits] = True
    return {OPEN: np.packbits(filtered)}


def open_among(filtered: Array, bits: Array) -> Array:
    """Which of the words with these bits are open."""
    return np.asarray(np.unpackbits(filtered)[bits].all(axis=1))


def bits_of(limbs: Array) -> Array:
    """The bits of each packed word in the filter of open words: parts of one public hash."""
    hashed = mixed(limbs, _SALT * (PLACES + 1) % (1 << 64))
    parts = np.arange(_OPEN_BITS, dtype=np.uint64) * np.uint64(21)
    return np.asarray((hashed[:, None] >> parts).astype(np.int64) % (OPEN_BYTES * 8))


USUAL_WORDS = 64  # distinct words of a document, in whose weights counts of documents are given
CHANCES = (0.05, 0.1, 0.35)  # words that noise alone brings into the list in each round, on average and at most
GAINS = (1.0, 1.75, 2.25)  # how much heavier an open word is expected to be in each round: chosen on four corpora
CUTS = (0.7, 1.3)  # after each round, words that stand out by fewer deviations than this are closed: chosen on four corpora
_MEDIAN = 0.8  # of what is required of the mean, the part that is required of the median
_STAGES, _SWEEPS = 12, 30


@dataclass(frozen=True)
class SummedWords:
    cells: Array
    deviation: float  # of the noise in each cell
    heard: Array  # which candidates were open


@dataclass
class WordSearch:
    """Finds words in one sum after the other. A word that was found in some sum stays found.

    All sums so far are searched together, each as heavy as its noise and the gain that is expected of it say.
    """

    listed: Sequence[str]  # a public list, the most frequent word in general first
    sums: list[SummedWords] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.candidates, self._bits, self.places, self.signs = _looked_up(tuple(self.listed))
        self.found = self._open = np.zeros(len(self.candidates), dtype=bool)
        self.about: State = {}  # of the next question

    def take(self, answer: Answer) -> None:
        """Searches the next opened sum, together with those before."""
        number = len(self.sums)
        heard = open_among(self.about[OPEN], self._bits) if self.about else np.ones(len(self.candidates), dtype=bool)
        cells = np.asarray(total_of(answer)["cells"], dtype=np.float64)
        self.sums.append(SummedWords(cells, max(answer.deviation, 1e-9), heard))
        heavy = [gain / one.deviation for gain, one in zip(GAINS, self.sums, strict=False)]
        together = np.asarray(sum(weight * (one.cells / one.deviation) for weight, one in zip(heavy, self.sums, strict=True)))
        deviation = float(np.linalg.norm(heavy))
        searched = Searched.in_cells(together, self.places, self.signs, deviation, self.found, CHANCES[number])
        self.found = searched.weights > 0
        if number < len(CUTS):
            self.about = opening(self._bits[~self.found & (searched.stand > CUTS[number])])

    def words(self) -> tuple[tuple[str, ...], Array, Array]:
        """The words that were found, alphabetically; their weights in rows of the first sum, and the deviations of these."""
        chosen = np.flatnonzero(self.found)
        weights, deviations = self._weights(chosen)
        order = sorted(range(len(chosen)), key=lambda n: self.candidates[chosen[n]])
        return tuple(self.candidates[chosen[n]] for n in order), weights[order], deviations[order]

    def frequencies(self, words: Sequence[str], usual: Array | None) -> Array:
        """The likely share of each of these words in rows, found or not: a posterior mean with the known noise.

        What is usual in general texts is its prior as far as that fits. A word that cannot be looked up is as rare as any.
        """
        places = {word: n for n, word in enumerate(self.candidates)}
        known = [n for n, word in enumerate(words) if word in places]
        weights, deviations = self._weights(np.array([places[words[n]] for n in known], dtype=np.int64))
        likely = likely_totals(weights, deviations, None if usual is None else usual[known])
        shares = np.full(len(words), likely.min(initial=1.0))
        shares[known] = likely
        return np.asarray(shares / shares.sum())

    def _weights(self, chosen: Array) -> tuple[Array, Array]:
        """Each word's weight by all sums in which it was open, those with less noise counting more."""
        top, precision, first = np.zeros(len(chosen)), np.zeros(len(chosen)), np.zeros(len(chosen))
        for number, one in enumerate(self.sums):
            heard = one.heard[chosen]
            seen = np.zeros(len(chosen))
            seen[heard] = _fitted(one.cells.copy(), self.places, self.signs, chosen[heard], _SWEEPS)
            first = first if number else seen
            whole = float(first[heard].sum())
            gain = min(max(float(seen.sum()) / whole, 0.5), 2 * GAINS[number]) if whole > 0 else GAINS[number]
            top += heard * gain / one.deviation**2 * seen
            precision += heard * (gain / one.deviation) ** 2
        return top / precision, 1 / np.sqrt(precision)


@lru_cache(maxsize=2)
def _looked_up(listed: tuple[str, ...]) -> tuple[tuple[str, ...], Array, Array, Array]:
    """The words of a public list that can be looked up, and their public hashes: the same in every run."""
    candidates = tuple(word for word in listed if fits(word))
    limbs = packed(candidates)
    return candidates, bits_of(limbs), *places_of(limbs)


def found_words(search: WordSearch, documents: int = 0, most: float = 1.0) -> tuple[tuple[str, ...], int, Array]:
    """The words that were found, with their numbers of documents. The number of documents of all parties is unknown, and 0.

    That of a word is its weight, in documents of a usual length. A word in more than the share `most` of all documents is left
    out, where a plan says about how many `documents` there are.
    """
    words, weights, _ = search.words()
    fine = share_of_documents(weights, documents) <= most if documents else np.ones(len(words), dtype=bool)
    counts = np.maximum(1, np.rint(weights * USUAL_WORDS**0.5)).astype(np.int64)
    return tuple(word for word, one in zip(words, fine, strict=True) if one), 0, counts[fine]


def share_of_documents(weights: Array, documents: int) -> Array:
    """In which share of so many documents each word is, about, and rather too little.

    A document of n words gives each of them a weight of one over the root of n, and so the root of n to all of them together.
    """
    found: Array = np.minimum(weights * weights.sum() / documents**2, 1.0)
    return found


@dataclass(frozen=True)
class Searched:
    weights: Array  # 0 where noise alone may have made it
    stand: Array  # by how many deviations it stands out, when what was found is taken away

    @classmethod
    def in_cells(cls, cells: Array, places: Array, signs: Array, deviation: float, known: Array, chance: float) -> Searched:
        """Searches these cells. Words that are `known` stay, however little they weigh here.

        In stages: words that stand out are taken, all their weights are fitted together by least squares, and what they leave
        in the cells is searched again, now without them. A candidate must stand above the noise on average over its cells,
        and half as much in the median, which a single frequent word in one of its cells does not move.
        """
        least, weights = required(len(places), chance), np.where(known, 1.0, 0.0)
        if known.any():
            weights[known] = np.maximum(_fitted(cells.copy(), places, signs, np.flatnonzero(known), _SWEEPS), 1e-9)
        stand = np.zeros(len(places))
        for _ in range(_STAGES):
            rest = cells.copy()
            chosen = np.flatnonzero(weights)
            _take(rest, places, signs, chosen, weights[chosen])
            noise = max(deviation, 1.4826 * float(np.median(np.abs(rest))))
            means, medians = _matched(rest, places, signs)
            stand = means / noise
            new = (weights == 0) & (stand > least) & (medians > _MEDIAN * least * noise)
            chosen = np.flatnonzero((weights > 0) | new)
            fitted = _fitted(cells.copy(), places, signs, chosen, _SWEEPS)
            before, weights = weights, np.zeros(len(weights))
            stay = (fitted > least[chosen] * noise) | known[chosen]
            weights[chosen] = np.where(stay, np.maximum(fitted, 1e-9), 0.0)
            if np.array_equal(before > 0, weights > 0):
                break
        return cls(weights, stand)


def standing_out(cells: Array, limbs: Array, known: Array) -> Array:
    """By how many deviations each packed word stands out, after the `known` ones, which come first, are fitted."""
    places, signs = places_of(limbs)
    rest = cells.copy()
    chosen = np.flatnonzero(known)
    _take(rest, places, signs, chosen, _fitted(cells.copy(), places, signs, chosen, _SWEEPS))
    deviation = float(np.sqrt(np.mean(np.square(rest)))) or 1.0
    return np.asarray(_matched(rest, places, signs)[0] / deviation)


def required(candidates: int, chance: float = CHANCES[-1]) -> Array:
    """How many deviations of noise each candidate must stand out, so that noise alone brings `chance` words on average.

    The chance of the n-th most frequent word of the list falls with 1 / n.
    """
    ranks = np.arange(1, candidates + 1)
    together = float((1 / ranks).sum())
    marks = np.unique(np.geomspace(1, max(candidates, 2), 200).astype(np.int64))  # exact at these, and between them nearly so
    from statistics import NormalDist  # with fractions, which nobody else loads

    known = [-NormalDist().inv_cdf(chance / (int(mark) * together)) for mark in marks]
    return np.interp(np.log(ranks), np.log(marks), known)


@njit(cache=True)
def _matched(rest: Array, places: Array, signs: Array) -> tuple[Array, Array]:
    """Each candidate's weight by the mean over its cells, in units of the noise, and by the median."""
    words, each = places.shape
    means, medians, seen = np.empty(words), np.empty(words), np.empty(each)
    for n in range(words):
        for k in range(each):
            one, at = rest[places[n, k]] * signs[n, k], k
            while at > 0 and seen[at - 1] > one:  # in order: there are few
                seen[at] = seen[at - 1]
                at -= 1
            seen[at] = one
        means[n] = seen.sum() / np.sqrt(each)
        medians[n] = (seen[each // 2] + seen[(each - 1) // 2]) / 2 * np.sqrt(each)
    return means, medians


@njit(cache=True)
def _take(rest: Array, places: Array, signs: Array, chosen: Array, weights: Array) -> None:
    """Takes these words out of the cells."""
    each = places.shape[1]
    for i in range(len(chosen)):
        for k in range(each):
            rest[places[chosen[i], k]] -= signs[chosen[i], k] * weights[i] / np.sqrt(each)


@njit(cache=True)
def _fitted(rest: Array, places: Array, signs: Array, chosen: Array, sweeps: int) -> Array:
    """The weights of these words by least squares, one word after the other, until nothing moves."""
    each = places.shape[1]
    weights = np.zeros(len(chosen))
    for _ in range(sweeps):
        moved = 0.0
        for i in range(len(chosen)):
            n, more = chosen[i], 0.0
            for k in range(each):
                more += rest[places[n, k]] * signs[n, k]
            more /= np.sqrt(each)
            for k in range(each):
                rest[places[n, k]] -= signs[n, k] * more / np.sqrt(each)
            weights[i] += more
            moved = max(moved, abs(more))
        if moved < 1e-6:
            break
    return weights
