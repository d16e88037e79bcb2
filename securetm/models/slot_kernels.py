"""The loops that draw topics for slots of weights by Metropolis-Hastings, compiled and free of the interpreter.

They know no privacy and keep nothing: topics are a function of the weights that come in, the shared topics and public noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.alias_tables import draw
from securetm.models.document_noise import uniform

MOST_WORDS = 8  # proposals by words that one draw gets, however many slots it has
WHOLE = 1 << 32  # a weight of one in the sums: whole numbers add up to the same in any order
_RUN = 64  # entries whose weights are summed in one go, to find one of them by its share
_DOCUMENT, _WORD = 3, 3  # numbers of the stream that a proposal by the document takes, and one by a word
_MOST = 700.0  # its exponential is finite


@njit(cache=True, nogil=True)
def first_topics(first: int, last: int, draw_ends: Array, noise: Array, known: Array, k: int, topics: Array) -> None:
    """Random topics for the documents that have none, whatever they hold."""
    for d in range(first, last):
        if not known[d]:
            begin = draw_ends[d]
            for t in range(begin, draw_ends[d + 1]):
                topics[t] = min(int(uniform(noise[d], t - begin) * k), k - 1)


class Shared(NamedTuple):
    """What every draw of a round is weighed by."""

    log_phi: Array  # topics x words
    tables: Array  # each word's phi as an alias table
    bits: Array  # the same memory as whole numbers
    alpha: Array
    alpha_table: Array
    alpha_bits: Array
    offset: Array  # added to a topic's sum, once for every slot of a draw


class Layout(NamedTuple):
    """Whose a draw is and which slots it has: where pieces, documents' draws and draws' slots begin, and the last ones end."""

    pieces: Array
    owners: Array
    draw_ends: Array
    slot_ends: Array


class Read(NamedTuple):
    """The weights of some slots in a row, as they were read."""

    ends: Array
    words: Array
    weights: Array


class Sheet(NamedTuple):
    """Room to reckon in: one draw's proposals, and what is known of the topics in them."""

    here: Array  # the document's other draws, by topic
    asked: Array  # the topics that are proposed, after the one that is there
    by: Array  # and the word that proposes each
    tried: Array  # the different ones among them
    place: Array  # where a topic stands among these, or -1
    sums: Array  # what the draw's weights say of each of these
    runs: Array


@njit(cache=True, nogil=True)
def draw_pieces(
    first: int, last: int, layout: Layout, read: Read, shared: Shared, noise: Array, sweeps: int, topics: Array
) -> None:
    """Sweeps over pieces `first` to `last`, whose slots are those that were read.

    A draw's target is (topics of the document's other draws + alpha) x exp(sum of weight x log phi).
    """
    pieces, draw_ends, slot_ends = layout.pieces, layout.draw_ends, layout.slot_ends
    k, origin, most = len(shared.alpha), slot_ends[pieces[first]], MOST_WORDS + 2
    runs = np.empty(_longest(pieces[first], pieces[last], slot_ends, read.ends) // _RUN + 1)
    asked, by, tried = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    sheet = Sheet(np.zeros(k), asked, by, tried, np.full(k, -1), np.empty(most), runs)
    concentration = shared.alpha.sum()
    for piece in range(first, last):
        d = layout.owners[piece]
        begin, end = draw_ends[d], draw_ends[d + 1]
        draws, slots, before = end - begin, slot_ends[end] - slot_ends[begin], slot_ends[begin]
        for t in range(begin, end):
            sheet.here[topics[t]] += 1.0
        for sweep in range(sweeps):
            for t in range(pieces[piece], pieces[piece + 1]):
                at = _DOCUMENT * ((sweep + 1) * draws + t - begin) + _WORD * (sweep * slots + slot_ends[t] - before)
                b, e, length = (
                    read.ends[slot_ends[t] - origin],
                    read.ends[slot_ends[t + 1] - origin],
                    slot_ends[t + 1] - slot_ends[t],
                )
                sheet.here[topics[t]] -= 1.0
                asked[0] = topics[t]
                asked[1] = _by_document(topics, begin, end, t, shared, concentration, noise[d], at)
                proposals = _by_words(b, e, min(length, MOST_WORDS), read, shared, sheet, noise[d], at + _DOCUMENT)
                topics[t] = _settle(b, e, length, proposals, read, shared, sheet, noise[d], at)
                sheet.here[topics[t]] += 1.0
        for t in range(begin, end):
            sheet.here[topics[t]] = 0.0


@njit(cache=True, nogil=True, inline="always")
def _by_words(b: int, e: int, most: int, read: Read, shared: Shared, sheet: Sheet, start: np.uint64, index: int) -> int:
    """Topics as single words propose them, each word chosen by its weight alone. Returns how many proposals there are now."""
    if e == b:
        return 2
    total = _sum_runs(b, e, read.weights, sheet.runs)
    for n in range(most):
        word = read.words[_entry(b, e, read.weights, sheet.runs, uniform(start, index + _WORD * n) * total)]
        sheet.by[n + 2] = word
        sheet.asked[n + 2] = _from_table(shared.tables, shared.bits, word, uniform(start, index + _WORD * n + 1))
    return most + 2


@njit(cache=True, nogil=True, inline="always")
def _settle(
    b: int, e: int, length: int, proposals: int, read: Read, shared: Shared, sheet: Sheet, start: np.uint64, at: int
) -> int:
    """The draw's topic after each proposal was accepted or not, one after the other."""
    asked, place, sums = sheet.asked, sheet.place, sheet.sums
    z: int = asked[0]
    many = _distinct(asked, proposals, place, sheet.tried)
    if many > 1:
        _likelihoods(sheet.tried, many, b, e, read.words, read.weights, shared.log_phi, sums)
        for n in range(many):
            sums[n] += length * shared.offset[sheet.tried[n]]
        for n in range(1, proposals):
            y = asked[n]
            if y != z:
                log_ratio, scale, index = sums[place[y]] - sums[place[z]], 1.0, at + 2
                if n > 1:  # the document's part is in the target, and the word's proposal is divided out
                    log_ratio += shared.log_phi[z, sheet.by[n]] - shared.log_phi[y, sheet.by[n]]
                    scale = (sheet.here[y] + shared.alpha[y]) / (sheet.here[z] + shared.alpha[z])
                    index = at + _DOCUMENT + _WORD * (n - 2) + 2
                if uniform(start, index) < math.exp(min(log_ratio, _MOST)) * scale:
                    z = y
    for n in range(many):
        place[sheet.tried[n]] = -1
    return z


@njit(cache=True, nogil=True)
def _longest(first: int, last: int, slot_ends: Array, ends: Array) -> int:
    """The most entries that one of these draws has."""
    most, origin = 0, slot_ends[first]
    for t in range(first, last):
        most = max(most, ends[slot_ends[t + 1] - origin] - ends[slot_ends[t] - origin])
    return most


@njit(cache=True, nogil=True, inline="always")
def _by_document(
    topics: Array, begin: int, end: int, t: int, shared: Shared, concentration: float, start: np.uint64, index: int
) -> int:
    """The topic of another draw of the document, or one by alpha: in proportion to what both make of it together."""
    others = end - begin - 1
    at = uniform(start, index) * (others + concentration)
    if at < others:
        other = begin + min(int(at), others - 1)
        return np.int64(topics[other + 1 if other >= t else other])  # type: ignore[return-value]
    return draw(shared.alpha_table, shared.alpha_bits, uniform(start, index + 1))


@njit(cache=True, nogil=True, inline="always")
def _from_table(tables: Array, bits: Array, row: int, chance: float) -> int:
    return draw(tables[row], bits[row], chance)


@njit(cache=True, nogil=True, inline="always")
def _sum_runs(b: int, e: int, weights: Array, runs: Array) -> float:
    """The sum of all weights; those of each run of entries go to `runs`."""
    total = 0.0
    for run, head in enumerate(range(b, e, _RUN)):
        one = two = three = four = 0.0
        stop = min(head + _RUN, e)
        whole = head + (stop - head) // 4 * 4
        for i in range(head, whole, 4):
            one += weights[i]
            two += weights[i + 1]
            three += weights[i + 2]
            four += weights[i + 3]
        for i in range(whole, stop):
            one += weights[i]
        runs[run] = (one + two) + (three + four)
        total += runs[run]
    return total


@njit(cache=True, nogil=True, inline="always")
def _entry(b: int, e: int, weights: Array, runs: Array, left: float) -> int:
    """The entry at that height of all weights piled up."""
    run, last = 0, (e - b - 1) // _RUN
    while run < last and left >= runs[run]:
        left -= runs[run]
        run += 1
    i = b + run * _RUN
    stop = min(i + _RUN, e) - 1
    while i < stop and left >= weights[i]:
        left -= weights[i]
        i += 1
    return i


@njit(cache=True, nogil=True, inline="always")
def _distinct(asked: Array, proposals: int, place: Array, tried: Array) -> int:
    """The topics that were asked for, each once, and where each of them stands."""
    many = 0
    for n in range(proposals):
        z = asked[n]
        if place[z] < 0:
            place[z] = many
            tried[many] = z
            many += 1
    return many


@njit(cache=True, nogil=True, inline="always")
def _likelihoods(tried: Array, many: int, b: int, e: int, words: Array, weights: Array, log_phi: Array, sums: Array) -> None:
    """Each tried topic's sum of weight x log phi, three topics in one pass over the entries: reading these is half the work."""
    n = 0
    while many - n > 2:
        sums[n], sums[n + 1], sums[n + 2] = _three(
            b, e, words, weights, log_phi[tried[n]], log_phi[tried[n + 1]], log_phi[tried[n + 2]]
        )
        n += 3
    if many - n == 2:
        sums[n], sums[n + 1] = _two(b, e, words, weights, log_phi[tried[n]], log_phi[tried[n + 1]])
    elif many - n == 1:
        sums[n], _ = _two(b, e, words, weights, log_phi[tried[n]], log_phi[tried[n]])


@njit(cache=True, nogil=True)
def _three(
    b: int, e: int, words: Array, weights: Array, first: Array, second: Array, third: Array
) -> tuple[float, float, float]:
    """By four lanes each, in one order: one long chain of additions is slow, and every machine must draw alike."""
    a0 = a1 = a2 = b0 = b1 = b2 = c0 = c1 = c2 = d0 = d1 = d2 = 0.0
    whole = b + (e - b) // 4 * 4
    for i in range(b, whole, 4):
        w, x = words[i], weights[i]
        a0 += x * first[w]
        a1 += x * second[w]
        a2 += x * third[w]
        w, x = words[i + 1], weights[i + 1]
        b0 += x * first[w]
        b1 += x * second[w]
        b2 += x * third[w]
        w, x = words[i + 2], weights[i + 2]
        c0 += x * first[w]
        c1 += x * second[w]
        c2 += x * third[w]
        w, x = words[i + 3], weights[i + 3]
        d0 += x * first[w]
        d1 += x * second[w]
        d2 += x * third[w]
    for i in range(whole, e):
        w, x = words[i], weights[i]
        a0 += x * first[w]
        a1 += x * second[w]
        a2 += x * third[w]
    return (a0 + b0) + (c0 + d0), (a1 + b1) + (c1 + d1), (a2 + b2) + (c2 + d2)


@njit(cache=True, nogil=True)
def _two(b: int, e: int, words: Array, weights: Array, first: Array, second: Array) -> tuple[float, float]:
    """The same of two topics."""
    a0 = a1 = b0 = b1 = c0 = c1 = d0 = d1 = 0.0
    whole = b + (e - b) // 4 * 4
    for i in range(b, whole, 4):
        w, x = words[i], weights[i]
        a0 += x * first[w]
        a1 += x * second[w]
        w, x = words[i + 1], weights[i + 1]
        b0 += x * first[w]
        b1 += x * second[w]
        w, x = words[i + 2], weights[i + 2]
        c0 += x * first[w]
        c1 += x * second[w]
        w, x = words[i + 3], weights[i + 3]
        d0 += x * first[w]
        d1 += x * second[w]
    for i in range(whole, e):
        w, x = words[i], weights[i]
        a0 += x * first[w]
        a1 += x * second[w]
    return (a0 + b0) + (c0 + d0), (a1 + b1) + (c1 + d1)


@njit(cache=True, nogil=True)
def add_up(first: int, last: int, layout: Layout, read: Read, topics: Array, sums: Array) -> None:
    """Adds the weights of pieces `first` to `last`, whose slots are those that were read, to the sums of their topics."""
    slot_ends = layout.slot_ends
    origin = slot_ends[layout.pieces[first]]
    for t in range(layout.pieces[first], layout.pieces[last]):
        row = sums[topics[t]]
        for i in range(read.ends[slot_ends[t] - origin], read.ends[slot_ends[t + 1] - origin]):
            row[read.words[i]] += np.int64(np.rint(read.weights[i] * WHOLE))
