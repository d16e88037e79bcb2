"""SentenceLDA's draws by Metropolis-Hastings: a sentence's topic is proposed in constant time, accepted by the exact ratio.

The document and the words propose in turn, as in iFTM's Algorithm 2. The ratio there is that of one word; here it is that of
the whole sentence. The draws have the same distribution as those of `resample_sentences`. Nothing here knows privacy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.document_noise import uniform
from securetm.models.gibbs.alias_tables import Proposals, draw
from securetm.models.gibbs.draws import RoundFacts
from securetm.models.sentence.sentence_gibbs_kernels import STRETCH, SentenceWords, widest

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
        _open(d, words, sentences, given, topics, document)
        for sweep in range(sweeps):
            for s in range(begin, end):
                if given.known[d] or sweep > 0:
                    others, z = end - begin - 1, int(topics[s])
                    _put(s, z, -1.0, sentences, document)
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
                _put(s, now.z, 1.0, sentences, document)
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
    often: float = (given.shared[w, z] + given.eta) * proposals.scale[z]
    return often


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
    raised: float = number if power == 0 else math.ldexp(number, min(max(power, -2000), 2000))
    return raised


@njit(cache=True, nogil=True)
def _open(d: int, words: Array, sentences: SentenceWords, given: RoundFacts, topics: Array, document: DocumentCounts) -> None:
    """Sets the buffers: everybody's words without this document's old ones, never below 0, and then with its current ones."""
    for z in range(len(document.mass)):
        document.mass[z] = given.totals[z]
    if given.counted[d]:
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            _put(s, topics[s], -1.0, sentences, document)
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            for e in range(sentences.word_ends[s], sentences.word_ends[s + 1]):
                place, z = sentences.places[e], topics[s]
                document.own[place, z] = max(document.own[place, z], -given.shared[words[place], z])
    document.here[:] = 0.0
    if given.known[d]:
        for s in range(sentences.draw_ends[d], sentences.draw_ends[d + 1]):
            _put(s, topics[s], 1.0, sentences, document)


@njit(cache=True, nogil=True, inline="always")
def _put(s: int, z: int, sign: float, sentences: SentenceWords, document: DocumentCounts) -> None:
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
