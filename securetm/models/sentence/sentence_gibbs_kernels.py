"""The loops of SentenceLDA over a range of documents: reading, names, topic draws, rows; compiled and free of the interpreter.

They know no privacy and keep nothing: what a document gives is a function of the document, the shared counts and public noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.document_noise import mix, uniform

_LANES = 8  # products that are added side by side
STRETCH = 16  # words of a sentence that are multiplied before the product's power of two is put aside: 1e-18 ** 16 is a double


class SentenceWords(NamedTuple):
    """Documents as sentences. A sentence is a list of words and counts; a word is a place among the kinds its document has."""

    draw_ends: Array  # where each document begins among the sentences, and where the last one ends
    word_ends: Array  # where each sentence begins in `places`, and where the last one ends
    places: Array
    counts: Array
    kind_ends: Array  # where each document begins in `kinds`, and where the last one ends
    kinds: Array


class RoundFacts(NamedTuple):
    """The weights of one round's draws, and what is known of each document."""

    noise: Array  # where each document's stream of public noise begins
    known: Array  # which documents have topics already
    counted: Array  # which of them are in the table
    shared: Array  # the table, vocabulary x topics, counts alone
    totals: Array  # of each topic
    alpha: Array
    eta: float
    smoothing: float  # eta of all words together


class DocumentBuffers(NamedTuple):
    """Buffers for one document: its sentences in each topic, and the shared counts with its own current ones."""

    here: Array
    mass: Array
    rows: Array  # kinds of words x topics


class SentenceBuffers(NamedTuple):
    """Room for one sentence: numerators, denominators, powers of two, and what comes of them (beyond the last topic zeros)."""

    above: Array
    below: Array
    power: Array
    weight: Array
    sums: Array
    at: Array  # the next words of the sentence: places
    plus: Array  # what each adds to its row: eta, and one for each time that the word came before


# ---- reading ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def gather(tokens: Array, token_ends: Array, sentence_ends: Array, vocabulary: int) -> SentenceWords:
    """Documents as sentences; words are numbered as they first come.

    `sentence_ends` has no empty sentence and every document's end; both kinds of ends begin with 0.
    """
    draw_ends, word_ends = np.zeros(len(token_ends), np.int64), np.zeros(len(sentence_ends), np.int64)
    places, counts = np.empty(len(tokens), np.int64), np.empty(len(tokens), np.int64)
    kind_ends, kinds = np.zeros(len(token_ends), np.int64), np.empty(len(tokens), np.int64)
    place, entry = np.full(vocabulary, -1, np.int64), np.full(vocabulary, -1, np.int64)  # where a word was met last
    s = used = known = 0
    for d in range(len(token_ends) - 1):
        while s < len(sentence_ends) - 1 and sentence_ends[s] < token_ends[d + 1]:
            begin = used
            for t in range(sentence_ends[s], sentence_ends[s + 1]):
                w = tokens[t]
                if place[w] < kind_ends[d]:
                    place[w] = known
                    kinds[known] = w
                    known += 1
                if entry[w] < begin:
                    entry[w] = used
                    places[used], counts[used] = place[w] - kind_ends[d], 0
                    used += 1
                counts[entry[w]] += 1
            s += 1
            word_ends[s] = used
        draw_ends[d + 1], kind_ends[d + 1] = s, known
    return SentenceWords(draw_ends, word_ends, places[:used].copy(), counts[:used].copy(), kind_ends, kinds[:known].copy())


@njit(cache=True, nogil=True)
def name_sentences(spoken: SentenceWords, keys: Array) -> Array:
    """A 64-bit name of each document: its key and what its sentences hold, so that topics are never recalled for others."""
    names = np.empty(len(keys), dtype=np.uint64)
    for d in range(len(keys)):
        name = mix(keys[d] + np.uint64(1))
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            name = mix(name ^ np.uint64(spoken.word_ends[s + 1] - spoken.word_ends[s]))
            for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
                word = spoken.kinds[spoken.kind_ends[d] + spoken.places[e]]
                name = mix(mix(name ^ np.uint64(word)) + np.uint64(spoken.counts[e]))
        names[d] = name
    return names


# ---- drawing ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def resample_sentences(first: int, last: int, spoken: SentenceWords, given: RoundFacts, sweeps: int, topics: Array) -> None:
    """Collapsed Gibbs sweeps over documents `first` to `last`; `topics` holds each sentence's topic before and after.

    A document that is `counted` in the table takes its old topics out and puts its new ones in as it goes; of the other
    documents it sees the table alone. A document that is not `known` draws its first topics one by one.
    """
    k = given.shared.shape[1]
    padded = -(-k // _LANES) * _LANES
    room = (np.empty(k), np.empty(k), np.empty(k, np.int64), np.zeros(padded), np.empty(padded // _LANES))
    scales = SentenceBuffers(*room, np.empty(STRETCH, np.int64), np.empty(STRETCH))
    bench = DocumentBuffers(np.empty(k), np.empty(k), np.empty((widest(spoken, first, last), k)))
    for d in range(first, last):
        _open(d, spoken, given, topics, bench)
        begin, end, drawn = spoken.draw_ends[d], spoken.draw_ends[d + 1], 0
        for sweep in range(sweeps):
            for s in range(begin, end):
                if given.known[d] or sweep > 0:
                    _put(s, topics[s], -1.0, spoken, bench)
                _weigh(s, spoken, given, bench, scales)
                topics[s] = pick(scales.weight, scales.sums, k, uniform(given.noise[d], drawn))
                _put(s, topics[s], 1.0, spoken, bench)
                drawn += 1


@njit(cache=True, nogil=True)
def widest(spoken: SentenceWords, first: int, last: int) -> int:
    """The most kinds of words that one of these documents has."""
    most = 0
    for d in range(first, last):
        most = max(most, spoken.kind_ends[d + 1] - spoken.kind_ends[d])
    return most


@njit(cache=True, nogil=True)
def _open(d: int, spoken: SentenceWords, given: RoundFacts, topics: Array, bench: DocumentBuffers) -> None:
    """Everybody's words without this document's old ones, never less than none, and then with its own."""
    bench.mass[:] = given.totals
    for i in range(spoken.kind_ends[d], spoken.kind_ends[d + 1]):
        bench.rows[i - spoken.kind_ends[d]] = given.shared[spoken.kinds[i]]
    if given.counted[d]:
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            _put(s, topics[s], -1.0, spoken, bench)
    bench.here[:] = 0.0
    if given.known[d]:
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            _put(s, topics[s], 1.0, spoken, bench)


@njit(cache=True, nogil=True, inline="always")
def _put(s: int, z: int, sign: float, spoken: SentenceWords, bench: DocumentBuffers) -> None:
    """A sentence's words into a topic or out of it; noise in the others' counts leaves none below zero."""
    bench.here[z] += sign
    for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
        count = sign * spoken.counts[e]
        bench.rows[spoken.places[e], z] = max(bench.rows[spoken.places[e], z] + count, 0.0)
        bench.mass[z] = max(bench.mass[z] + count, 0.0)


@njit(cache=True, nogil=True, inline="always")
def _weigh(s: int, spoken: SentenceWords, given: RoundFacts, bench: DocumentBuffers, scales: SentenceBuffers) -> None:
    """Each topic's share of the document times how likely it makes the whole sentence (Dirichlet-multinomial).

    Numerators and denominators are multiplied apart. Of a long sentence each product's power of two is put aside every few
    words, so that no topic is lost on the way, however long the sentence is.
    """
    for z in range(len(scales.above)):
        scales.above[z], scales.below[z], scales.power[z] = bench.here[z] + given.alpha[z], 1.0, 0
    done = waiting = 0
    for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
        for j in range(spoken.counts[e]):
            if waiting == STRETCH:
                _multiply(waiting, given.smoothing + done, bench, scales)
                _put_aside(scales)
                done, waiting = done + waiting, 0
            scales.at[waiting], scales.plus[waiting] = spoken.places[e], given.eta + j
            waiting += 1
    _multiply(waiting, given.smoothing + done, bench, scales)
    _settle(done > 0, scales)


@njit(cache=True, nogil=True, inline="always")
def _multiply(words: int, smoothing: float, bench: DocumentBuffers, scales: SentenceBuffers) -> None:
    """The waiting words into the products, four at a time where there are as many: memory is what takes the time."""
    above, below, mass, at, plus, t = scales.above, scales.below, bench.mass, scales.at, scales.plus, 0
    while t + 4 <= words:
        a, b, c, d = bench.rows[at[t]], bench.rows[at[t + 1]], bench.rows[at[t + 2]], bench.rows[at[t + 3]]
        of_a, of_b, of_c, of_d = plus[t], plus[t + 1], plus[t + 2], plus[t + 3]
        for z in range(len(above)):
            others = mass[z] + (smoothing + t)
            above[z] *= ((a[z] + of_a) * (b[z] + of_b)) * ((c[z] + of_c) * (d[z] + of_d))
            below[z] *= (others * (others + 1.0)) * ((others + 2.0) * (others + 3.0))
        t += 4
    while t < words:
        a, of_a = bench.rows[at[t]], plus[t]
        for z in range(len(above)):
            above[z] *= a[z] + of_a
            below[z] *= mass[z] + (smoothing + t)
        t += 1


@njit(cache=True, nogil=True, inline="always")
def _put_aside(scales: SentenceBuffers) -> None:
    for z in range(len(scales.below)):
        scales.above[z], more = math.frexp(scales.above[z] / scales.below[z])
        scales.power[z] += more
        scales.below[z] = 1.0


@njit(cache=True, nogil=True, inline="always")
def _settle(long: bool, scales: SentenceBuffers) -> None:
    if long:
        _put_aside(scales)
        most = scales.power.max()
        for z in range(len(scales.power)):
            scales.weight[z] = math.ldexp(scales.above[z], max(scales.power[z] - most, -2000))
    else:
        for z in range(len(scales.power)):
            scales.weight[z] = scales.above[z] / scales.below[z]


@njit(cache=True, nogil=True, inline="always")
def pick(weight: Array, sums: Array, k: int, chance: float) -> int:
    """A topic with probability in proportion to its weight.

    Sums go by lanes, since one long chain of additions is slow, and in one order, so that every machine draws alike.
    """
    total = 0.0
    for block in range(len(sums)):
        b = block * _LANES
        sums[block] = ((weight[b] + weight[b + 1]) + (weight[b + 2] + weight[b + 3])) + (
            (weight[b + 4] + weight[b + 5]) + (weight[b + 6] + weight[b + 7])
        )
        total += sums[block]
    left, block = chance * total, 0
    while block < len(sums) - 1 and left >= sums[block]:
        left -= sums[block]
        block += 1
    z = block * _LANES
    last = min(z + _LANES, k) - 1
    while z < last and left >= weight[z]:
        left -= weight[z]
        z += 1
    return z


# ---- what leaves ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def counts_of_sentences(spoken: SentenceWords, topics: Array, out: Array) -> None:
    """All documents' topic-word counts together, added to `out` (vocabulary x topics)."""
    for d in range(len(spoken.draw_ends) - 1):
        words = spoken.kinds[spoken.kind_ends[d] : spoken.kind_ends[d + 1]]
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
                out[words[spoken.places[e]], topics[s]] += spoken.counts[e]


@njit(cache=True, nogil=True)
def rows_of_sentences(
    documents: Array, spoken: SentenceWords, topics: Array, vocabulary: int, k: int
) -> tuple[Array, Array, Array]:
    """These documents' topic-word counts as parts of a CSR matrix; no row names a place twice, so that its length is right."""
    size = most = 0
    for d in documents:
        size += spoken.word_ends[spoken.draw_ends[d + 1]] - spoken.word_ends[spoken.draw_ends[d]]
        most = max(most, spoken.kind_ends[d + 1] - spoken.kind_ends[d])
    values, columns = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    borders, found, used = np.zeros(len(documents) + 1, dtype=np.int64), np.zeros((most, k), dtype=np.int64), 0
    for row, d in enumerate(documents):
        words = spoken.kinds[spoken.kind_ends[d] : spoken.kind_ends[d + 1]]
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
                found[spoken.places[e], topics[s]] += spoken.counts[e]
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
                place, z = spoken.places[e], np.int64(topics[s])
                if found[place, z]:
                    values[used], columns[used] = found[place, z], z * vocabulary + words[place]
                    found[place, z] = 0
                    used += 1
        borders[row + 1] = used
    return values[:used], columns[:used], borders
