"""The compiled loops of LDA over a range of documents: names, topic draws, rows, topic shares and likelihoods.

They know no privacy and keep nothing. A document's row is a function of the document, the shared counts and public noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.document_noise import mix, uniform
from securetm.models.gibbs.draws import RoundFacts
from securetm.models.gibbs.lanes import LANES, choose, lanes_for

_SETTLED = 1e-4  # of a topic's words in a document: folding in ends where no topic moves further


class Bags(NamedTuple):
    """Documents as lists of words and counts."""

    ends: Array  # where each document begins in `words`, and where the last one ends
    words: Array
    counts: Array


@njit(cache=True, nogil=True)
def name_documents(bags: Bags, keys: Array) -> Array:
    """A 64-bit name of each document, made of its key and its words: no topic is recalled for other words."""
    ends, words, counts = bags
    names = np.empty(len(keys), dtype=np.uint64)
    for d in range(len(keys)):
        name = mix(keys[d] + np.uint64(1))
        for i in range(ends[d], ends[d + 1]):
            name = mix(name ^ (np.uint64(words[i]) | np.uint64(counts[i]) << np.uint64(32)))
        names[d] = name
    return names


@njit(cache=True, nogil=True)
def draws_of(ends: Array, counts: Array) -> tuple[Array, int]:
    """Where each document's tokens begin and the last one's end, and the least count of a word, or 1 where there is none."""
    borders, least = np.zeros(len(ends), dtype=np.int64), np.int64(1)
    for d in range(len(ends) - 1):
        size = np.int64(0)
        for i in range(ends[d], ends[d + 1]):
            size += counts[i]
            least = min(least, counts[i])
        borders[d + 1] = borders[d] + size
    return borders, least  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def resample(first: int, last: int, bags: Bags, draw_ends: Array, given: RoundFacts, sweeps: int, topics: Array) -> None:
    """Collapsed Gibbs sweeps over documents `first` to `last`; `topics` holds each token's topic before and after.

    `given.shared` is in single precision, with zeros up to whole blocks of lanes. A document that is `counted` in it takes its
    old topics out and puts its new ones in as it goes. Of the other documents it sees the table alone. A document that is not
    `known` draws its first topics one by one.
    """
    ends, words, counts = bags
    noise, known, counted, shared, totals, alpha, eta, smoothing = given
    k, blocks = len(alpha), shared.shape[1] // LANES
    one, least = np.float32(1.0), np.float32(eta)
    here, others = np.empty(k), np.empty(k)
    weight, share, sums = lanes_for(k), lanes_for(k), lanes_for(k)
    for d in range(first, last):
        begin, end = draw_ends[d], draw_ends[d + 1]
        old, now = topics[begin:end].copy(), topics[begin:end]
        _open(old, known[d], counted[d], totals, alpha, smoothing, here, others, share)
        drawn = 0
        for sweep in range(sweeps):
            assigned = known[d] or sweep > 0
            t = 0
            for i in range(ends[d], ends[d + 1]):
                _weigh(shared[words[i]], old, now, t, counts[i], counted[d], assigned, weight)
                for _ in range(counts[i]):
                    z, less, product = np.int64(-1), np.float32(0.0), np.float32(0.0)
                    if assigned:
                        z = np.int64(now[t])
                        less = np.float32((here[z] - 1.0 + alpha[z]) / (others[z] + here[z] - 1.0))
                        product = (max(weight[z] - one, np.float32(0.0)) + least) * less
                    chance = uniform(noise[d], drawn)
                    found: int = choose(weight, least, share, sums, blocks, z, product, chance)  # type: ignore[call-arg]
                    fresh = min(found, k - 1)
                    if fresh != z:
                        if assigned:
                            weight[z] = max(weight[z] - one, np.float32(0.0))
                            here[z] -= 1.0
                            share[z] = less
                        now[t] = fresh
                        weight[fresh] += one
                        here[fresh] += 1.0
                        share[fresh] = (here[fresh] + alpha[fresh]) / (others[fresh] + here[fresh])
                    t += 1
                    drawn += 1


@njit(cache=True, nogil=True, inline="always")
def _open(
    old: Array,
    known: bool,
    counted: bool,
    totals: Array,
    alpha: Array,
    smoothing: float,
    here: Array,
    others: Array,
    share: Array,
) -> None:
    """Sets a document's counts of topics, everybody else's, and the factor of a topic's probability that no word changes."""
    here[:] = 0.0
    if known:
        for z in old:
            here[z] += 1.0
    for z in range(len(here)):
        others[z] = max(totals[z] - here[z] if counted else totals[z], 0.0) + smoothing
        share[z] = (here[z] + alpha[z]) / (others[z] + here[z])


@njit(cache=True, nogil=True, inline="always")
def _weigh(row: Array, old: Array, now: Array, t: int, count: int, counted: bool, assigned: bool, weight: Array) -> None:
    """Sets each topic's count of one word: the others' count, never below 0, and this document's current one."""
    one = np.float32(1.0)
    for z in range(len(row)):
        weight[z] = row[z]
    if counted:
        for j in range(t, t + count):
            weight[old[j]] = max(weight[old[j]] - one, np.float32(0.0))
    if assigned:
        for j in range(t, t + count):
            weight[now[j]] += one


@njit(cache=True, nogil=True)
def counts_of(bags: Bags, draw_ends: Array, topics: Array, by_word: Array) -> None:
    """Adds all documents' topic-word counts to `by_word` (vocabulary x topics)."""
    ends, words, counts = bags
    for d in range(len(ends) - 1):
        t = draw_ends[d]
        for i in range(ends[d], ends[d + 1]):
            for j in range(t, t + counts[i]):
                by_word[words[i], topics[j]] += 1.0
            t += counts[i]


@njit(cache=True, nogil=True)
def rows_of(
    documents: Array, bags: Bags, draw_ends: Array, topics: Array, vocabulary: int, k: int, narrow: Array
) -> tuple[Array, Array, Array]:
    """These documents' topic-word counts as parts of a CSR matrix; no row names a place twice, so that its norm is right.

    Places have the type of `narrow`.
    """
    ends, words, counts = bags
    size = 0
    for d in documents:
        size += draw_ends[d + 1] - draw_ends[d]
    values, places = np.empty(size, dtype=np.int64), np.empty(size, dtype=narrow.dtype)
    borders = np.zeros(len(documents) + 1, dtype=narrow.dtype)
    found = np.zeros(k, dtype=np.int64)
    used = 0
    for row, d in enumerate(documents):
        t = draw_ends[d]
        for i in range(ends[d], ends[d + 1]):
            if counts[i] == 1:
                values[used] = 1
                places[used] = topics[t] * np.int64(vocabulary) + words[i]
                used += 1
                t += 1
                continue
            for j in range(t, t + counts[i]):
                found[topics[j]] += 1
            for j in range(t, t + counts[i]):
                if found[topics[j]]:
                    values[used] = found[topics[j]]
                    places[used] = topics[j] * np.int64(vocabulary) + words[i]
                    found[topics[j]] = 0
                    used += 1
            t += counts[i]
        borders[row + 1] = used
    return values[:used], places[:used], borders


@njit(cache=True, nogil=True)
def fold_in(first: int, last: int, bags: Bags, phi: Array, alpha: Array, passes: int, out: Array) -> None:
    """Topic shares of documents under fixed topics (`phi`: vocabulary x topics) by CVB0: a word's own share is left out."""
    ends, words, counts = bags
    k = phi.shape[1]
    most = 0
    for d in range(first, last):
        most = max(most, ends[d + 1] - ends[d])
    shares, here, fresh = np.empty((most, k)), np.empty(k), np.empty(k)
    for d in range(first, last):
        fold_in_one(ends[d], ends[d + 1], words, counts, phi, alpha, passes, shares, here, fresh, out[d])


@njit(cache=True, nogil=True)
def fold_in_one(
    begin: int,
    end: int,
    words: Array,
    counts: Array,
    phi: Array,
    alpha: Array,
    passes: int,
    shares: Array,
    here: Array,
    fresh: Array,
    out: Array,
) -> None:
    """Topic shares of one document, in `out`; the three arrays before it have room for its words' shares and its topics'."""
    k, length = phi.shape[1], 0
    for i in range(begin, end):
        length += counts[i]
        for z in range(k):
            shares[i - begin, z] = 1.0 / k
    for z in range(k):
        here[z] = float(length) / k
    for _ in range(passes):
        moved = 0.0
        for i in range(begin, end):
            moved = max(moved, move(shares[i - begin], here, fresh, phi[words[i]], counts[i], alpha))
        if moved < _SETTLED:
            break
    for z in range(k):
        out[z] = max(here[z], 0.0) + alpha[z]
    _scale(out)


@njit(cache=True, nogil=True, inline="always")
def _scale(shares: Array) -> None:
    """Scales shares so that they sum to one, cell by cell: sums and quotients of whole arrays take a second to compile."""
    total = 0.0
    for z in range(len(shares)):
        total += shares[z]
    for z in range(len(shares)):
        shares[z] /= total


@njit(cache=True, nogil=True, inline="always")
def move(share: Array, here: Array, fresh: Array, chances: Array, count: int, alpha: Array) -> float:
    """Updates the topic shares of a word or sentence that occurs `count` times. Returns how far it moved the document."""
    total, moved = 0.0, 0.0
    for z in range(len(share)):
        fresh[z] = (max(here[z] - share[z], 0.0) + alpha[z]) * chances[z]
        total += fresh[z]
    for z in range(len(share)):
        step = fresh[z] / total - share[z]
        share[z] += step
        here[z] += count * step
        moved = max(moved, abs(count * step))
    return moved


@njit(cache=True, nogil=True)
def log_likelihoods(first: int, last: int, bags: Bags, phi: Array, shares: Array, out: Array) -> None:
    """The log-likelihood of each document's words under fixed topics and the documents' own shares of them."""
    ends, words, counts = bags
    for d in range(first, last):
        likelihood = 0.0
        for i in range(ends[d], ends[d + 1]):
            chance = 0.0
            for z in range(phi.shape[1]):
                chance += shares[d, z] * phi[words[i], z]
            likelihood += counts[i] * math.log(min(chance, 1.0))
        out[d] = likelihood
