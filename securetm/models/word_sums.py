"""Words found in one noised sum over all parties: every document adds its words to hashed cells, as one row of l2 norm 1.

Each word adds plus or minus the same number to a few cells of a public table, so a sum of rows holds every word's weight. The
cells are public, and so is their number: which of them hold anything depends on noise. Whoever opens the sum looks up words of
a public list in it. No party names a word, and a word that is on no public list is not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numba import njit
from scipy import sparse

from securetm.contracts import Answer, Array, Block, ClippedSum, Documents, Memory, Terms
from securetm.models.queries import present, total_of
from securetm.models.word_sketch import fits, mixed, packed

CELLS = 1 << 18
PLACES = 8  # cells of each word
USUAL_WORDS = 64  # distinct words of a document, in whose weights counts of documents are given
CHANCE = 0.5  # words that noise alone brings into the list, on average and at most
_ROOM = 1.0 - 2.0**-30  # for rounding, so that no row is longer than 1
_AT_ONCE = 4096  # documents whose rows are made at once
_STAGES, _SWEEPS = 12, 30
_SALT = 0x9E3779B97F4A7C15  # its multiples differ in more bits than two letters of a word can


@dataclass(frozen=True)
class WordSums:
    """Asks for the sum of one row per document: its words in hashed cells, scaled to an l2 norm of 1.

    A document with few words gives each of them more weight, and none weighs more than another document does in all.
    """

    @property
    def terms(self) -> Terms:
        """One row per document. A mechanism gives the words' noise, which is another than that of the training."""
        return Terms((Block("cells", (CELLS,)),), data_only=True, counts_words=True, bits=64, l2=1.0, linf=1.0)

    def answer(self, documents: Documents, clipped_sum: ClippedSum, memory: Memory, rng: np.random.Generator) -> None:  # noqa: ARG002
        """Adds the documents' rows. The entries before the scale are whole numbers, so no order of words changes a bit."""
        held, cells = present(documents.counts), _table(documents.vocabulary)
        step = max(1, len(documents)) if documents.persons is not None else _AT_ONCE  # a person's rows are bounded together
        for first in range(0, len(documents), step):
            rows = sparse.csr_array(held[first : first + step] @ cells)
            rows.sum_duplicates()
            squares = np.add.reduceat(np.append(rows.data**2, 0), rows.indptr[:-1]) * (np.diff(rows.indptr) > 0)
            scale = _ROOM / np.sqrt(np.maximum(squares, 1))
            scaled = rows.data * np.repeat(scale, np.diff(rows.indptr))
            owners = np.arange(first, first + rows.shape[0])
            clipped_sum.add(sparse.csr_array((scaled, rows.indices, rows.indptr), rows.shape), owners)


def found_words(answer: Answer, listed: Sequence[str]) -> tuple[tuple[str, ...], int, Array]:
    """The words of a public list that stand above the noise of an opened sum, alphabetically, with their numbers of documents.

    `listed` begins with the most frequent word in general. The number of documents of all parties is unknown, and 0 here; that
    of a word is its weight, in documents of a usual length.
    """
    candidates = [word for word in listed if fits(word)]
    weights = weights_of(np.asarray(total_of(answer)["cells"], dtype=np.float64), candidates, answer.deviation)
    found = sorted((candidates[n], weights[n]) for n in np.flatnonzero(weights))
    counts = np.array([max(1, round(weight * USUAL_WORDS**0.5)) for _, weight in found], dtype=np.int64)
    return tuple(word for word, _ in found), 0, counts


def weights_of(cells: Array, candidates: Sequence[str], deviation: float) -> Array:
    """The weight of each candidate in these cells; 0 where noise alone may have made it.

    In stages: words that stand out are taken, all their weights are fitted together by least squares, and what they leave in
    the cells is searched again, now without them. A candidate must stand above the noise on average over its cells, and half
    as much in the median, which a single frequent word in one of its cells does not move.
    """
    places, signs = places_of(candidates)
    least, weights = required(len(candidates)), np.zeros(len(candidates))
    for _ in range(_STAGES):
        rest = np.array(cells, dtype=np.float64)
        chosen = np.flatnonzero(weights)
        _take(rest, places, signs, chosen, weights[chosen])
        noise = max(deviation, 1.4826 * float(np.median(np.abs(rest))))
        means, medians = _matched(rest, places, signs)
        new = (weights == 0) & (means > least * noise) & (medians > least * noise / 2)
        chosen = np.flatnonzero((weights > 0) | new)
        fitted = _fitted(np.array(cells, dtype=np.float64), places, signs, chosen, _SWEEPS)
        before, weights = weights, np.zeros(len(candidates))
        weights[chosen] = np.where(fitted > least[chosen] * noise, fitted, 0.0)
        if np.array_equal(before > 0, weights > 0):
            break
    return weights


def required(candidates: int) -> Array:
    """How many deviations of noise each candidate must stand out, so that noise alone brings `CHANCE` words on average.

    The chance of the n-th most frequent word of the list falls with 1 / n.
    """
    ranks = np.arange(1, candidates + 1)
    together = float((1 / ranks).sum())
    marks = np.unique(np.geomspace(1, max(candidates, 2), 200).astype(np.int64))  # exact at these, and between them nearly so
    known = [-NormalDist().inv_cdf(CHANCE / (int(mark) * together)) for mark in marks]
    return np.interp(np.log(ranks), np.log(marks), known)


def places_of(words: Sequence[str]) -> tuple[Array, Array]:
    """The cells of each word and the sign with which it adds to each: public hashes of the word alone."""
    limbs = packed(words)
    hashed = np.column_stack([mixed(limbs, _SALT * number % (1 << 64)) for number in range(1, PLACES + 1)])
    return (hashed >> np.uint64(40)).astype(np.int64) % CELLS, ((hashed & np.uint64(1)).astype(np.int64) * 2 - 1)


def _table(words: Sequence[str]) -> sparse.csr_array:
    """One row a word: its signs in its cells. A word that does not fit has no cell."""
    kept = [n for n, word in enumerate(words) if fits(word)]
    places, signs = places_of([words[n] for n in kept])
    shape = (len(words), CELLS)
    return sparse.csr_array((signs.ravel(), (np.repeat(np.array(kept, dtype=np.int64), PLACES), places.ravel())), shape=shape)


@njit(cache=True)
def _matched(rest: Array, places: Array, signs: Array) -> tuple[Array, Array]:
    """Each candidate's weight by the mean over its cells, in units of the noise, and by the median."""
    words, each = places.shape
    means, medians, seen = np.empty(words), np.empty(words), np.empty(each)
    for n in range(words):
        for k in range(each):
            seen[k] = rest[places[n, k]] * signs[n, k]
        seen.sort()
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
