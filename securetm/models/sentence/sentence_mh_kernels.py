"""SentenceLDA's draws by Metropolis and Hastings: a sentence's topic is proposed in constant time, accepted by the exact ratio.

Proposals take turns as in iFTM's Algorithm 2; the ratio there is that of one word, here it is that of the whole sentence. What
is drawn in the end has the law of Gibbs' `resample_sentences`; nothing here knows privacy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.document_noise import uniform
from securetm.models.gibbs.alias_tables import build, draw, tables_of
from securetm.models.gibbs.draws import CountTable, on_ranges
from securetm.models.sentence.sentence_gibbs_kernels import STRETCH, RoundFacts, SentenceWords, widest

_PROPOSERS = 8  # words of a sentence that propose a topic in one sweep; of a longer one they are drawn anew each time


class Proposals(NamedTuple):
    """Alias tables, and the same memory as whole numbers: of each word's topics by (shared + eta) x scale, and of alpha."""

    of_words: Array
    word_bits: Array
    of_alpha: Array
    alpha_bits: Array
    scale: Array
    prior: float  # the sum of alpha


class DocumentCounts(NamedTuple):
    """One document's sentences in each topic, everybody's words with its own, and what its own add: empty in between."""

    here: Array
    mass: Array
    own: Array  # kinds of words x topics


class SentenceTopic(NamedTuple):
    """A sentence's topic, how likely that makes its words, and the power of two this is to be raised by."""

    z: int
    chance: float
    power: int


def proposals_of(table: CountTable, threads: int) -> Proposals:
    """This round's tables."""
    scale = 1.0 / (table.totals + table.words * table.eta)
    of_words, sums = np.empty((table.words, table.topics)), np.empty(table.words)
    places, bits = np.arange(table.words + 1), of_words.view(np.uint64)
    on_ranges(places, threads, lambda first, last: build(first, last, table.by_word, scale, bits, sums))
    of_alpha = tables_of(table.alpha[np.newaxis])[0][0]
    return Proposals(of_words, bits, of_alpha, of_alpha.view(np.uint64), scale, float(table.alpha.sum()))


@njit(cache=True, nogil=True)
def resample_by_proposals(
    first: int,
    last: int,
    spoken: SentenceWords,
    given: RoundFacts,
    proposals: Proposals,
    sweeps: int,
    cycles: int,
    topics: Array,
) -> None:
    """As `resample_sentences`; a document that is not `known` begins with topics that its words propose.

    In each cycle a sentence's document proposes once, and then its words do, each by its own table.
    """
    k = given.shared.shape[1]
    diary = DocumentCounts(np.empty(k), np.empty(k), np.zeros((widest(spoken, first, last), k)))
    for d in range(first, last):
        begin, end, drawn = spoken.draw_ends[d], spoken.draw_ends[d + 1], 0
        words, old = spoken.kinds[spoken.kind_ends[d] : spoken.kind_ends[d + 1]], topics[begin:end].copy()
        _open(d, words, spoken, given, topics, diary)
        for sweep in range(sweeps):
            for s in range(begin, end):
                if given.known[d] or sweep > 0:
                    others, z = end - begin - 1, int(topics[s])
                    _put(s, z, -1.0, spoken, diary)
                else:
                    others, w = s - begin, words[spoken.places[spoken.word_ends[s]]]
                    z = draw(proposals.of_words[w], proposals.word_bits[w], uniform(given.noise[d], drawn))
                    drawn += 1
                now = _said(s, z, words, spoken, given, diary)
                for _ in range(cycles):
                    new = _by_document(s, begin, others, topics, proposals, given.noise[d], drawn)
                    if new != now.z:
                        then = _said(s, new, words, spoken, given, diary)
                        if uniform(given.noise[d], drawn + 2) * now.chance < _raised(then.chance, then.power - now.power):
                            now = then
                    now, drawn = _by_words(s, words, now, spoken, given, proposals, diary, given.noise[d], drawn + 3)
                topics[s] = now.z
                _put(s, now.z, 1.0, spoken, diary)
        _close(d, old, spoken, topics, diary)


@njit(cache=True, nogil=True, inline="always")
def _by_document(s: int, begin: int, others: int, topics: Array, proposals: Proposals, noise: np.uint64, drawn: int) -> int:
    """The topic of another sentence, or one by alpha: in proportion to here + alpha, so that these cancel in the ratio."""
    if uniform(noise, drawn) * (others + proposals.prior) < others:
        other = begin + min(int(uniform(noise, drawn + 1) * others), others - 1)
        return int(topics[other + 1 if other >= s else other])
    return draw(proposals.of_alpha, proposals.alpha_bits, uniform(noise, drawn + 1))


@njit(cache=True, nogil=True, inline="always")
def _by_words(
    s: int,
    words: Array,
    now: SentenceTopic,
    spoken: SentenceWords,
    given: RoundFacts,
    proposals: Proposals,
    diary: DocumentCounts,
    noise: np.uint64,
    drawn: int,
) -> tuple[SentenceTopic, int]:
    """Each word proposes by its table; which words do, does not depend on the topic."""
    e, kinds = spoken.word_ends[s], spoken.word_ends[s + 1] - spoken.word_ends[s]
    for turn in range(min(kinds, _PROPOSERS)):
        if kinds > _PROPOSERS:
            turn = min(int(uniform(noise, drawn + 2) * kinds), kinds - 1)
        w = words[spoken.places[e + turn]]
        new = draw(proposals.of_words[w], proposals.word_bits[w], uniform(noise, drawn))
        if new != now.z:
            then = _said(s, new, words, spoken, given, diary)
            moves = then.chance * (diary.here[new] + given.alpha[new]) * _proposed(w, now.z, given, proposals)
            stays = now.chance * (diary.here[now.z] + given.alpha[now.z]) * _proposed(w, new, given, proposals)
            if uniform(noise, drawn + 1) * stays < _raised(moves, then.power - now.power):
                now = then
        drawn += 3
    return now, drawn


@njit(cache=True, nogil=True, inline="always")
def _proposed(w: int, z: int, given: RoundFacts, proposals: Proposals) -> float:
    """How often a word's table proposes a topic, but for a factor that is the same for all topics."""
    often: float = (given.shared[w, z] + given.eta) * proposals.scale[z]
    return often


@njit(cache=True, nogil=True, inline="always")
def _said(s: int, z: int, words: Array, spoken: SentenceWords, given: RoundFacts, diary: DocumentCounts) -> SentenceTopic:
    """How likely one topic makes a whole sentence (Dirichlet-multinomial), in the document as it is without it."""
    above, below, power, t = 1.0, 1.0, 0, 0
    mass = diary.mass[z] + given.smoothing
    for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
        place = spoken.places[e]
        weight = max(given.shared[words[place], z] + diary.own[place, z], 0.0) + given.eta
        for j in range(spoken.counts[e]):
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
def _open(d: int, words: Array, spoken: SentenceWords, given: RoundFacts, topics: Array, diary: DocumentCounts) -> None:
    """Everybody's words without this document's old ones, never less than none, and then with its own."""
    diary.mass[:] = given.totals
    if given.counted[d]:
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            _put(s, topics[s], -1.0, spoken, diary)
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
                place, z = spoken.places[e], topics[s]
                diary.own[place, z] = max(diary.own[place, z], -given.shared[words[place], z])
    diary.here[:] = 0.0
    if given.known[d]:
        for s in range(spoken.draw_ends[d], spoken.draw_ends[d + 1]):
            _put(s, topics[s], 1.0, spoken, diary)


@njit(cache=True, nogil=True, inline="always")
def _put(s: int, z: int, sign: float, spoken: SentenceWords, diary: DocumentCounts) -> None:
    """A sentence's words into a topic or out of it."""
    diary.here[z] += sign
    for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
        count = sign * spoken.counts[e]
        diary.own[spoken.places[e], z] += count
        diary.mass[z] = max(diary.mass[z] + count, 0.0)


@njit(cache=True, nogil=True)
def _close(d: int, old: Array, spoken: SentenceWords, topics: Array, diary: DocumentCounts) -> None:
    """What this document has added stands only where a sentence's topic was or is; it is emptied."""
    begin = spoken.draw_ends[d]
    for s in range(begin, spoken.draw_ends[d + 1]):
        for e in range(spoken.word_ends[s], spoken.word_ends[s + 1]):
            diary.own[spoken.places[e], old[s - begin]] = 0.0
            diary.own[spoken.places[e], topics[s]] = 0.0
