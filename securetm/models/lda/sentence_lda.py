"""SentenceLDA: all words of a sentence have one topic, and a document is a mixture of its sentences' topics.

A document's row is a function of the document, the shared counts and public noise.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array, Reads, Rows, State
from securetm.data_classes import dataclass, replace
from securetm.errors import BrokenPromise
from securetm.extras import sparse
from securetm.models.batches import on_ranges, with_zero
from securetm.models.document_noise import mix, uniform
from securetm.models.estimator import OrNone, Smoothing
from securetm.models.given_documents import no_sentences
from securetm.models.lda.counting import Assignments, CountTable, RoundFacts, SampledDocuments
from securetm.models.lda.lda import LDA
from securetm.models.lda.samplers import Proposals, draw, proposals_of
from securetm.models.lda.slots import Slots
from securetm.models.mixed_topics import move

_LANES = 8  # sums side by side
STRETCH = 16  # words of a sentence that are multiplied before the product is rescaled: 1e-18 ** 16 is still a double


class SentenceWords(NamedTuple):
    """Documents as sentences. A sentence is a list of words and counts; a word is a place in its document's `kinds`."""

    draw_ends: Array  # where each document begins among the sentences, and where the last one ends
    word_ends: Array  # where each sentence begins in `places`, and where the last one ends
    places: Array
    counts: Array
    kind_ends: Array  # where each document begins in `kinds`, and where the last one ends
    kinds: Array  # the distinct words of each document


class DocumentBuffers(NamedTuple):
    """Buffers for one document."""

    here: Array  # its sentences in each topic
    mass: Array  # each topic's words, shared and its own
    rows: Array  # the counts of its distinct words, shared and its own: words x topics


class SentenceBuffers(NamedTuple):
    """Buffers for one sentence: each topic's weight as a quotient of products."""

    above: Array  # numerators
    below: Array  # denominators
    power: Array  # powers of two that were taken out
    weight: Array  # zeros beyond the last topic
    sums: Array  # of blocks of weights
    at: Array  # the rows of the next words of the sentence
    plus: Array  # what is added to each row: eta, and one for each earlier occurrence of the word


# ---- reading ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def gather(tokens: Array, token_ends: Array, sentence_ends: Array, vocabulary: int) -> SentenceWords:
    """Documents as sentences; a document's distinct words are numbered in order of appearance.

    `sentence_ends` has no empty sentence and every document's end; both kinds of ends begin with 0.
    """
    draw_ends, word_ends = np.zeros(len(token_ends), np.int64), np.zeros(len(sentence_ends), np.int64)
    places, counts = np.empty(len(tokens), np.int64), np.empty(len(tokens), np.int64)
    kind_ends, kinds = np.zeros(len(token_ends), np.int64), np.empty(len(tokens), np.int64)
    place, entry = np.full(vocabulary, -1, np.int64), np.full(vocabulary, -1, np.int64)  # the last place of each word
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
def name_sentences(sentences: SentenceWords, keys: Array) -> Array:
    """A 64-bit name of each document, made of its key and its sentences: no topic is recalled for other sentences."""
    names = np.empty(len(keys), dtype=np.uint64)
    for d in range(len(keys)):
        name = mix(keys[d] + np.uint64(1))
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            name = mix(name ^ np.uint64(sentences.word_ends[s + 1] - sentences.word_ends[s]))
            for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
                word = sentences.kinds[sentences.kind_ends[d] + sentences.places[e]]
                name = mix(mix(name ^ np.uint64(word)) + np.uint64(sentences.counts[e]))
        names[d] = name
    return names


# ---- drawing by Gibbs --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def resample_sentences(first: int, last: int, sentences: SentenceWords, given: RoundFacts, sweeps: int, topics: Array) -> None:
    """Collapsed Gibbs sweeps over documents `first` to `last`; `topics` holds each sentence's topic before and after.

    A document that is `counted` in the table takes its old topics out and puts its new ones in as it goes. Of the other
    documents it sees the table alone. A document that is not `known` draws its first topics one by one.
    """
    k = given.shared.shape[1]
    padded = -(-k // _LANES) * _LANES
    room = (np.empty(k), np.empty(k), np.empty(k, np.int64), np.zeros(padded), np.empty(padded // _LANES))
    products = SentenceBuffers(*room, np.empty(STRETCH, np.int64), np.empty(STRETCH))
    document = DocumentBuffers(np.empty(k), np.empty(k), np.empty((widest(sentences, first, last), k)))
    for d in range(first, last):
        _open(d, sentences, given, topics, document)
        begin, end, drawn = sentences.draw_ends[d], sentences.draw_ends[d + 1], 0
        for sweep in range(sweeps):
            for s in range(begin, end):
                if given.known[d] or sweep > 0:
                    _put(s, topics[s], -1.0, sentences, document)
                _weigh(s, sentences, given, document, products)
                topics[s] = pick(products.weight, products.sums, k, uniform(given.noise[d], drawn))
                _put(s, topics[s], 1.0, sentences, document)
                drawn += 1


@njit(cache=True, nogil=True)
def widest(sentences: SentenceWords, first: int, last: int) -> int:
    """The most distinct words of one of these documents."""
    most = 0
    for d in range(first, last):
        most = max(most, sentences.kind_ends[d + 1] - sentences.kind_ends[d])
    return most


@njit(cache=True, nogil=True)
def _open(d: int, sentences: SentenceWords, given: RoundFacts, topics: Array, document: DocumentBuffers) -> None:
    """Sets the buffers: everybody's words without this document's old ones, never below 0, and then with its current ones."""
    _copy(d, sentences, given, document)
    if given.counted[d]:
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            _put(s, topics[s], -1.0, sentences, document)
    document.here[:] = 0.0
    if given.known[d]:
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            _put(s, topics[s], 1.0, sentences, document)


@njit(cache=True, nogil=True, inline="always")
def _copy(d: int, sentences: SentenceWords, given: RoundFacts, document: DocumentBuffers) -> None:
    """Copies everybody's words, cell by cell: to assign whole rows takes a second to compile."""
    begin = sentences.kind_ends[d]
    for z in range(len(document.mass)):
        document.mass[z] = given.totals[z]
    for i in range(begin, sentences.kind_ends[d + 1]):
        for z in range(len(document.mass)):
            document.rows[i - begin, z] = given.shared[sentences.kinds[i], z]


@njit(cache=True, nogil=True, inline="always")
def _put(s: int, z: int, sign: float, sentences: SentenceWords, document: DocumentBuffers) -> None:
    """Adds a sentence's words to a topic or takes them out. No count falls below 0, even where shared counts are noisy."""
    document.here[z] += sign
    for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
        count = sign * sentences.counts[e]
        document.rows[sentences.places[e], z] = max(document.rows[sentences.places[e], z] + count, 0.0)
        document.mass[z] = max(document.mass[z] + count, 0.0)


@njit(cache=True, nogil=True, inline="always")
def _weigh(s: int, sentences: SentenceWords, given: RoundFacts, document: DocumentBuffers, products: SentenceBuffers) -> None:
    """Each topic's share of the document times its likelihood of the whole sentence (Dirichlet-multinomial).

    Numerators and denominators are multiplied apart. In a long sentence the power of two is taken out of the products every
    few words, so that no topic underflows, however long the sentence is.
    """
    for z in range(len(products.above)):
        products.above[z], products.below[z], products.power[z] = document.here[z] + given.alpha[z], 1.0, 0
    done = waiting = 0
    for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
        for j in range(sentences.counts[e]):
            if waiting == STRETCH:
                _multiply(waiting, given.smoothing + done, document, products)
                _rescale(products)
                done, waiting = done + waiting, 0
            products.at[waiting], products.plus[waiting] = sentences.places[e], given.eta + j
            waiting += 1
    _multiply(waiting, given.smoothing + done, document, products)
    _weigh_topics(done > 0, products)


@njit(cache=True, nogil=True, inline="always")
def _multiply(words: int, smoothing: float, document: DocumentBuffers, products: SentenceBuffers) -> None:
    """Multiplies the waiting words into the products, four at a time where possible: memory access takes most of the time."""
    above, below, mass, at, plus, t = products.above, products.below, document.mass, products.at, products.plus, 0
    while t + 4 <= words:
        a, b, c, d = document.rows[at[t]], document.rows[at[t + 1]], document.rows[at[t + 2]], document.rows[at[t + 3]]
        of_a, of_b, of_c, of_d = plus[t], plus[t + 1], plus[t + 2], plus[t + 3]
        for z in range(len(above)):
            others = mass[z] + (smoothing + t)
            above[z] *= ((a[z] + of_a) * (b[z] + of_b)) * ((c[z] + of_c) * (d[z] + of_d))
            below[z] *= (others * (others + 1.0)) * ((others + 2.0) * (others + 3.0))
        t += 4
    while t < words:
        a, of_a = document.rows[at[t]], plus[t]
        for z in range(len(above)):
            above[z] *= a[z] + of_a
            below[z] *= mass[z] + (smoothing + t)
        t += 1


@njit(cache=True, nogil=True, inline="always")
def _rescale(products: SentenceBuffers) -> None:
    """Divides numerators by denominators, and takes the powers of two out of the quotients."""
    for z in range(len(products.below)):
        products.above[z], more = math.frexp(products.above[z] / products.below[z])
        products.power[z] += more
        products.below[z] = 1.0


@njit(cache=True, nogil=True, inline="always")
def _weigh_topics(long: bool, products: SentenceBuffers) -> None:
    """Sets the weights: the quotients, in a long sentence relative to the largest power of two."""
    if long:
        _rescale(products)
        most = products.power.max()
        for z in range(len(products.power)):
            products.weight[z] = math.ldexp(products.above[z], max(products.power[z] - most, -2000))
    else:
        for z in range(len(products.power)):
            products.weight[z] = products.above[z] / products.below[z]


@njit(cache=True, nogil=True, inline="always")
def pick(weight: Array, sums: Array, k: int, chance: float) -> int:
    """A topic with probability proportional to its weight.

    Sums go by lanes, since one long chain of additions is slow. Their order is fixed, so that every machine draws alike.
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


# ---- drawing by proposals ------------------------------------------------------------------------------------------------


_PROPOSERS = 8  # words of a sentence that propose a topic in one cycle; in a longer sentence they are drawn at random


class DocumentCounts(NamedTuple):
    """Buffers for one document."""

    here: Array  # its sentences in each topic
    mass: Array  # each topic's words, shared and its own
    own: Array  # what it adds to the counts of its distinct words: words x topics; zeros between two documents


class SentenceTopic(NamedTuple):
    """A sentence's topic, and its likelihood: `chance` times two to the `power`."""

    z: int
    chance: float
    power: int


@njit(cache=True, nogil=True)
def resample_by_proposals(
    first: int,
    last: int,
    sentences: SentenceWords,
    given: RoundFacts,
    proposals: Proposals,
    prior: float,
    sweeps: int,
    cycles: int,
    topics: Array,
) -> None:
    """As `resample_sentences`; a document that is not `known` begins with topics that its words propose.

    In each cycle a sentence's document proposes once, and then its words do, each by its table. `prior` is the sum of alpha.
    """
    k = given.shared.shape[1]
    document = DocumentCounts(np.empty(k), np.empty(k), np.zeros((widest(sentences, first, last), k)))
    for d in range(first, last):
        begin, end, drawn = sentences.draw_ends[d], sentences.draw_ends[d + 1], 0
        words, old = sentences.kinds[sentences.kind_ends[d] : sentences.kind_ends[d + 1]], topics[begin:end].copy()
        _open_counts(d, words, sentences, given, topics, document)
        for sweep in range(sweeps):
            for s in range(begin, end):
                if given.known[d] or sweep > 0:
                    others, z = end - begin - 1, int(topics[s])
                    _put_counts(s, z, -1.0, sentences, document)
                else:
                    others, w = s - begin, words[sentences.places[sentences.word_ends[s]]]
                    z = draw(proposals.of_words[w], proposals.word_bits[w], uniform(given.noise[d], drawn))
                    drawn += 1
                now = _likelihood(s, z, words, sentences, given, document)
                for _ in range(cycles):
                    new = _by_document(s, begin, others, topics, proposals, prior, given.noise[d], drawn)
                    if new != now.z:
                        then = _likelihood(s, new, words, sentences, given, document)
                        if uniform(given.noise[d], drawn + 2) * now.chance < _raised(then.chance, then.power - now.power):
                            now = then
                    now, drawn = _by_words(s, words, now, sentences, given, proposals, document, given.noise[d], drawn + 3)
                topics[s] = now.z
                _put_counts(s, now.z, 1.0, sentences, document)
        _close(d, old, sentences, topics, document)


@njit(cache=True, nogil=True, inline="always")
def _by_document(
    s: int, begin: int, others: int, topics: Array, proposals: Proposals, prior: float, noise: np.uint64, drawn: int
) -> int:
    """The topic of another sentence, or one by alpha: in proportion to here + alpha, so that these cancel in the ratio."""
    if uniform(noise, drawn) * (others + prior) < others:
        other = begin + min(int(uniform(noise, drawn + 1) * others), others - 1)
        return int(topics[other + 1 if other >= s else other])
    return draw(proposals.of_alpha, proposals.alpha_bits, uniform(noise, drawn + 1))


@njit(cache=True, nogil=True, inline="always")
def _by_words(
    s: int,
    words: Array,
    now: SentenceTopic,
    sentences: SentenceWords,
    given: RoundFacts,
    proposals: Proposals,
    document: DocumentCounts,
    noise: np.uint64,
    drawn: int,
) -> tuple[SentenceTopic, int]:
    """Words propose by their tables. The choice of words does not depend on the topic."""
    e, kinds = sentences.word_ends[s], sentences.word_ends[s + 1] - sentences.word_ends[s]
    for turn in range(min(kinds, _PROPOSERS)):
        if kinds > _PROPOSERS:
            turn = min(int(uniform(noise, drawn + 2) * kinds), kinds - 1)
        w = words[sentences.places[e + turn]]
        new = draw(proposals.of_words[w], proposals.word_bits[w], uniform(noise, drawn))
        if new != now.z:
            then = _likelihood(s, new, words, sentences, given, document)
            moves = then.chance * (document.here[new] + given.alpha[new]) * _proposed(w, now.z, given, proposals)
            stays = now.chance * (document.here[now.z] + given.alpha[now.z]) * _proposed(w, new, given, proposals)
            if uniform(noise, drawn + 1) * stays < _raised(moves, then.power - now.power):
                now = then
        drawn += 3
    return now, drawn


@njit(cache=True, nogil=True, inline="always")
def _proposed(w: int, z: int, given: RoundFacts, proposals: Proposals) -> float:
    """The probability that a word's table proposes a topic, up to a factor that is the same for all topics."""
    found: float = (given.shared[w, z] + given.eta) * proposals.scale[z]
    return found


@njit(cache=True, nogil=True, inline="always")
def _likelihood(
    s: int, z: int, words: Array, sentences: SentenceWords, given: RoundFacts, document: DocumentCounts
) -> SentenceTopic:
    """One topic's likelihood of a whole sentence (Dirichlet-multinomial), given the document without that sentence."""
    above, below, power, t = 1.0, 1.0, 0, 0
    mass = document.mass[z] + given.smoothing
    for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
        place = sentences.places[e]
        weight = max(given.shared[words[place], z] + document.own[place, z], 0.0) + given.eta
        for j in range(sentences.counts[e]):
            if t and t % STRETCH == 0:
                above, more = math.frexp(above / below)
                below = 1.0
                power += more
            above *= weight + j
            below *= mass + t
            t += 1
    if t > STRETCH:
        above, more = math.frexp(above / below)
        return SentenceTopic(z, above, power + more)
    return SentenceTopic(z, above / below, 0)


@njit(cache=True, nogil=True, inline="always")
def _raised(number: float, power: int) -> float:
    return number if power == 0 else math.ldexp(number, min(max(power, -2000), 2000))


@njit(cache=True, nogil=True)
def _open_counts(
    d: int, words: Array, sentences: SentenceWords, given: RoundFacts, topics: Array, document: DocumentCounts
) -> None:
    """Sets the buffers: everybody's words without this document's old ones, never below 0, and then with its current ones."""
    for z in range(len(document.mass)):
        document.mass[z] = given.totals[z]
    if given.counted[d]:
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            _put_counts(s, topics[s], -1.0, sentences, document)
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
                place, z = sentences.places[e], topics[s]
                document.own[place, z] = max(document.own[place, z], -given.shared[words[place], z])
    document.here[:] = 0.0
    if given.known[d]:
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            _put_counts(s, topics[s], 1.0, sentences, document)


@njit(cache=True, nogil=True, inline="always")
def _put_counts(s: int, z: int, sign: float, sentences: SentenceWords, document: DocumentCounts) -> None:
    """Adds a sentence's words to a topic, or takes them out."""
    document.here[z] += sign
    for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
        count = sign * sentences.counts[e]
        document.own[sentences.places[e], z] += count
        document.mass[z] = max(document.mass[z] + count, 0.0)


@njit(cache=True, nogil=True)
def _close(d: int, old: Array, sentences: SentenceWords, topics: Array, document: DocumentCounts) -> None:
    """Clears `own`. It is not 0 only at the old and current topics of the document's sentences."""
    begin = sentences.draw_ends[d]
    for s in range(begin, sentences.draw_ends[d + 1]):
        for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
            document.own[sentences.places[e], old[s - begin]] = 0.0
            document.own[sentences.places[e], topics[s]] = 0.0


# ---- rows --------------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def counts_of_sentences(sentences: SentenceWords, topics: Array, out: Array) -> None:
    """Adds all documents' topic-word counts to `out` (vocabulary x topics)."""
    for d in range(len(sentences.draw_ends) - 1):
        words = sentences.kinds[sentences.kind_ends[d] : sentences.kind_ends[d + 1]]
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
                out[words[sentences.places[e]], topics[s]] += sentences.counts[e]


@njit(cache=True, nogil=True)
def rows_of_sentences(
    documents: Array, sentences: SentenceWords, topics: Array, vocabulary: int, k: int
) -> tuple[Array, Array, Array]:
    """These documents' topic-word counts as parts of a CSR matrix; no row names a place twice, so that its norm is right."""
    size = most = 0
    for d in documents:
        size += sentences.word_ends[sentences.draw_ends[d + 1]] - sentences.word_ends[sentences.draw_ends[d]]
        most = max(most, sentences.kind_ends[d + 1] - sentences.kind_ends[d])
    values, columns = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    borders, found, used = np.zeros(len(documents) + 1, dtype=np.int64), np.zeros((most, k), dtype=np.int64), 0
    for row, d in enumerate(documents):
        words = sentences.kinds[sentences.kind_ends[d] : sentences.kind_ends[d + 1]]
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
                found[sentences.places[e], topics[s]] += sentences.counts[e]
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
                place, z = sentences.places[e], np.int64(topics[s])
                if found[place, z]:
                    values[used], columns[used] = found[place, z], z * vocabulary + words[place]
                    found[place, z] = 0
                    used += 1
        borders[row + 1] = used
    return values[:used], columns[:used], borders


# ---- folding in --------------------------------------------------------------------------------------------------------


_SETTLED = 1e-4  # of a topic's sentences in a document: folding in ends where no topic moves further


@njit(cache=True, nogil=True)
def fold_in_sentences(
    first: int, last: int, sentences: SentenceWords, logs: Array, alpha: Array, passes: int, out: Array
) -> None:
    """Topic shares of documents under fixed topics (`logs`: vocabulary x topics) by CVB0 without a sentence's own share."""
    k, here, fresh = logs.shape[1], np.empty(logs.shape[1]), np.empty(logs.shape[1])
    for d in range(first, last):
        begin, length = sentences.draw_ends[d], sentences.draw_ends[d + 1] - sentences.draw_ends[d]
        chances, shares = np.empty((length, k)), np.empty((length, k))
        for s in range(length):
            _set_chances(begin + s, d, sentences, logs, chances[s])
        shares[:] = 1.0 / k
        here[:] = length / k
        for _ in range(passes):
            moved = 0.0
            for s in range(length):
                moved = max(moved, move(shares[s], here, fresh, chances[s], 1, alpha))
            if moved < _SETTLED:
                break
        for z in range(k):
            out[d, z] = max(here[z], 0.0) + alpha[z]
        whole = out[d].sum()
        for z in range(k):  # cell by cell: to divide a row in place takes seconds to compile
            out[d, z] /= whole


@njit(cache=True, nogil=True)
def _set_chances(s: int, d: int, sentences: SentenceWords, logs: Array, chances: Array) -> float:
    """Sets each topic's likelihood of a sentence, relative to the largest. Returns the logarithm of the largest."""
    chances[:] = 0.0
    for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
        row, count = logs[sentences.kinds[sentences.kind_ends[d] + sentences.places[e]]], sentences.counts[e]
        for z in range(len(chances)):
            chances[z] += count * row[z]
    best: float = chances.max()
    for z in range(len(chances)):
        chances[z] = math.exp(chances[z] - best)
    return best


@njit(cache=True, nogil=True)
def log_likelihoods_of_sentences(
    first: int, last: int, sentences: SentenceWords, logs: Array, shares: Array, out: Array
) -> None:
    """The log-likelihood of each document's sentences under fixed topics and the documents' own shares of them."""
    chances = np.empty(logs.shape[1])
    for d in range(first, last):
        likelihood = 0.0
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            best = _set_chances(s, d, sentences, logs, chances)
            mixed = 0.0
            for z in range(len(chances)):
                mixed += chances[z] * shares[d, z]
            likelihood += min(best + math.log(mixed), 0.0)
        out[d] = likelihood


@dataclass(frozen=True)
class SentenceDocuments(SampledDocuments):
    """Documents as sentences in reading order."""

    sentences: SentenceWords
    cycles: int = 0  # of proposals for each sentence in a sweep; 0: it is drawn by Gibbs

    @classmethod
    def from_documents(cls, documents: Any, vocabulary: int, longest: int = 0) -> Self:
        """The sentences of documents in reading order, over that many words; those without a word are passed over.

        Where `longest` is not 0, longer sentences are cut into parts of about equal length that are not.
        """
        token_ends, sentence_ends = _ends(documents, longest)
        tokens = documents.tokens
        words = max(documents.counts.shape[1], int(tokens.max(initial=0)) + 1)
        if words != vocabulary:
            raise BrokenPromise("document", words, vocabulary)
        sentences = gather(np.ascontiguousarray(tokens), token_ends, sentence_ends, vocabulary)
        return cls(sentences.draw_ends, sentences)

    @cached_property
    def lengths(self) -> Array:
        return with_zero(np.cumsum(self.sentences.counts))[self.sentences.word_ends[self.draw_ends]]

    def names(self, keys: Array) -> Array:
        return name_sentences(self.sentences, np.ascontiguousarray(keys, dtype=np.uint64))

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        topics, given = old.topics.copy(), table.facts(old, np.ascontiguousarray(table.counts.T))
        if self.cycles:
            rest = (proposals_of(table, threads), float(table.alpha.sum()), sweeps, self.cycles, topics)
            on_ranges(self.lengths, threads, resample_by_proposals, self.sentences, given, *rest)
        else:
            on_ranges(self.lengths, threads, resample_sentences, self.sentences, given, sweeps, topics)
        return topics

    def counted(self, topics: Array, table: CountTable) -> Array:
        by_word = np.zeros((table.words, table.topics))
        counts_of_sentences(self.sentences, topics, by_word)
        return np.ascontiguousarray(by_word.T)

    def rows(self, documents: Array, topics: Array, table: CountTable) -> Rows:
        parts = rows_of_sentences(documents, self.sentences, topics, table.words, table.topics)
        return sparse.csr_array(parts, shape=(len(documents), table.topics * table.words))


def _ends(documents: Any, longest: int) -> tuple[Array, Array]:
    """Where documents end, and where their sentences do, none of which is empty; both begin with 0."""
    if documents.sentence_ends is None:
        raise no_sentences()
    token_ends = with_zero(documents.token_ends)
    sentence_ends = np.unique(np.concatenate([token_ends, documents.sentence_ends]).astype(np.int64))
    return token_ends, _cut(sentence_ends, longest) if longest else sentence_ends


def _cut(ends: Array, longest: int) -> Array:
    lengths = np.diff(ends)
    parts = -(-lengths // longest)
    part = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
    first = np.repeat(ends[:-1], parts) + part * np.repeat(lengths, parts) // np.repeat(parts, parts)
    return np.append(first, ends[-1])


_FEW_TOPICS = 2000  # up to here a draw over all topics learns more in a second than proposals do


@dataclass(frozen=True)
class SentenceLDA(LDA):
    """LDA whose draws are sentences, by Gibbs or by Metropolis-Hastings; documents must say where their sentences end.

    A document has few sentences, so `alpha` is smaller than LDA's. One word that a topic never had would decide for a whole
    sentence, so `eta` is larger. Text without punctuation is one sentence, and so has one topic: `longest` cuts it.
    """

    name: ClassVar[str] = "sentence-lda"
    reads: ClassVar[frozenset[Reads]] = frozenset({Reads.COUNTS, Reads.SENTENCES})

    alpha: Smoothing = 0.02  # of the symmetric Dirichlet prior of a document's topics, sentence by sentence
    eta: Smoothing = 0.1
    longest: OrNone = 0  # words of a sentence: a longer one is cut; 0: however long it is

    def read(self, documents: Any, words: int) -> SampledDocuments:
        """Each document's sentences; every sentence is a draw. Behind noise it is its slots, whose ends are public."""
        if documents.perturbed is not None:
            return Slots.from_documents(documents, words, _ends(documents, self.longest)[1])
        return replace(SentenceDocuments.from_documents(documents, words, self.longest), cycles=self.cycles_from(_FEW_TOPICS))

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares, by sentence, under the shared topics, without random draws.

        It is CVB0 with the topics fixed, as for LDA, but a sentence as a whole belongs to a topic.
        """
        logs = np.log(self.by_word(state))
        held = SentenceDocuments.from_documents(documents, len(logs), self.longest)
        out = np.empty((len(held), logs.shape[1]))
        on_ranges(held.lengths, self.threads, fold_in_sentences, held.sentences, logs, *self.folding(state), out)
        return out

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen sentences, given the topic shares of its seen ones.

        Like LDA's it is the logarithm of a probability of the same words, so the two may be compared. But this model knows
        where the unseen sentences end, and words of one sentence help to predict each other.
        """
        shares, logs = self.infer(state, seen), np.log(self.by_word(state))
        held = SentenceDocuments.from_documents(unseen, len(logs), self.longest)
        out = np.zeros(len(held))
        on_ranges(held.lengths, self.threads, log_likelihoods_of_sentences, held.sentences, logs, shares, out)
        return out
