"""The inner loop of noise on token slots: a keystream, ladders of chances, and each slot's weights one after the other.

It makes no randomness, and it does not run in constant time: whoever can time single slots is outside every claim.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from securetm.contracts import Array

FIRST_BITS = 16  # of a draw; most are decided by them, nearly all others by 64 bits more
QUICK_BITS = 13  # of these, which decide most draws: a table of so many places stays in the first cache
MORE_WORDS = 4  # of 64 bits that a bound has besides, compared as far as it takes
EVEN_BITS = 7  # in all but 2^-7 of cases a step's last bits are even chances, which need no ladder
UNEVEN = (1 << EVEN_BITS) - 1
LAWS = 4
GAPS, HIGH, LOW, SIGNS = range(LAWS)
PAGE = (1 << FIRST_BITS) + 1
DONE, FULL, SHORT = 0, 1, 2  # why `fill` came back: all slots are done, no room for one more, its stream was too short
REST = np.uint16(FIRST_BITS - QUICK_BITS)
ONE, TWO, WORD = np.uint64(1), np.uint64(2), np.uint64(4)  # places in a stream of 16 bits each
MOST_OF_A_STEP = np.uint64(3 * (1 + 4 * MORE_WORDS) + 1)  # places that one coordinate takes at most


class Ladders(NamedTuple):
    """Laws on 0, 1, 2, ... as bounds of 272 bits: the outcome is how many of a law's bounds are not above the draw.

    Gaps between counts that are left; how far these are above the least, first and last bits; whether noise is not negative.
    """

    sure: Array  # int16, laws x 2^16: by a draw's first 16 bits the outcome, or -1 where they do not decide
    book: Array  # uint64: for each law and first bits where their bounds begin in it; then all bounds' next words, word by word


@njit(cache=True, nogil=True)
def _word(stream: Array, cursor: Any) -> Any:
    word = np.uint64(0)
    for i in range(4):
        word = (word << np.uint64(16)) | np.uint64(stream[cursor + np.uint64(i)])
    return word


@njit(cache=True, nogil=True)
def _drawn(law: int, book: Array, stream: Array, cursor: Any) -> Any:
    """One draw, and where its stream goes on. Among bounds that agree with it so far, each further word leaves fewer."""
    here = law * PAGE + np.int64(stream[cursor])
    cursor += ONE
    place, last = np.int64(book[here]), np.int64(book[here + 1])
    further, more = np.int64(0), (len(book) - LAWS * PAGE) // MORE_WORDS
    while place < last and further < MORE_WORDS:
        word = _word(stream, cursor)
        cursor += WORD
        while place < last and book[place + further * more] < word:
            place += 1
        stop = place
        while stop < last and book[stop + further * more] == word:
            stop += 1
        last, further = stop, further + 1
    if further == MORE_WORDS:  # all words agree, and a bound is not above a draw that equals it
        place = last
    return place - np.int64(book[law * PAGE]), cursor


@njit(cache=True, nogil=True)
def _step(law: int, low_bits: int, book: Array, stream: Array, cursor: Any) -> Any:
    """A draw of that law, then how far noise is above the least, and where the stream goes on."""
    first, cursor = _drawn(law, book, stream, cursor)
    far, cursor = _drawn(HIGH, book, stream, cursor)
    if low_bits == 0:
        return first, far, cursor
    last = np.int64(stream[cursor])
    cursor += ONE
    if last & UNEVEN != UNEVEN:
        return first, (far << low_bits) + (last >> EVEN_BITS), cursor
    last, cursor = _drawn(LOW, book, stream, cursor)
    return first, (far << low_bits) + last, cursor


@njit(cache=True, nogil=True)
def fill(  # noqa: C901 - one pass over the stream: what is taken from it depends on what was taken before
    stream: Array,
    stride: int,
    words: Array,
    size: int,
    one: int,
    least: Any,
    most: Any,
    limit: int,
    low_bits: int,
    grid: float,
    gaps: Array,
    high: Array,
    sure: Array,
    book: Array,
    ends: Array,
    ids: Array,
    weights: Array,
    start: int,
) -> tuple[Any, Any, Any]:
    """Slots that hold these words, each with `stride` parts of the stream: their non-zero weights, words in rising order.

    A negative word is none. The slot's own word is weighed first, and every other coordinate draws the same whatever that word
    is. A gap of `limit` says only that there is nothing so far. Returns how many slots were done, how many weights there are
    now, and why it came back. What first bits decide is done in place, which is most of it; unsigned places save a look at
    their sign.
    """
    at, width, shift, never = np.uint64(start), np.uint64(3), EVEN_BITS, UNEVEN
    if low_bits == 0:
        width, shift, never = np.uint64(2), FIRST_BITS, 1 << FIRST_BITS
    for slot in range(len(words)):
        if len(ids) - np.int64(at) <= size:  # one place more, where a weight is written that may not stay
            return slot, np.int64(at), FULL
        begin, cursor, stop = np.int64(at), np.uint64(slot * stride), np.uint64((slot + 1) * stride)
        word = np.int64(words[slot])
        positive, far = np.int64(sure[SIGNS, stream[cursor]]), np.int64(sure[HIGH, stream[cursor + ONE]])
        last = np.int64(stream[cursor + TWO])
        if positive | far < 0 or last & UNEVEN == never:
            positive, far, cursor = _step(SIGNS, low_bits, book, stream, cursor)
        else:
            far = (far << low_bits) + (last >> shift)
            cursor += width
        own: Any = one + far if positive else one - 1 - far
        place: Any = word if word >= 0 and own >= least else size
        here: Any = -1
        while True:
            if cursor + MOST_OF_A_STEP > stop:
                return slot, begin, SHORT
            gap, far = np.int64(gaps[stream[cursor] >> REST]), np.int64(high[stream[cursor + ONE] >> REST])
            last = np.int64(stream[cursor + TWO])
            if gap | far < 0:
                gap, far = np.int64(sure[GAPS, stream[cursor]]), np.int64(sure[HIGH, stream[cursor + ONE]])
            if gap | far < 0 or last & UNEVEN == never:
                gap, far, cursor = _step(GAPS, low_bits, book, stream, cursor)
                if gap == limit:
                    here += limit
                    continue
            else:
                far = (far << low_bits) + (last >> shift)
                cursor += width
            here += gap + 1
            if here >= place:  # the end of the slot too: beyond it there is nothing
                if place < size:
                    ids[at] = place
                    weights[at] = min(own, most) * grid
                    at += ONE
                    place = size
                if here >= size:
                    break
            ids[at] = here
            weights[at] = min(least + far, most) * grid
            at += np.uint64(here != word)  # its own weight stands there already, or was not above the threshold
        ends[slot + 1] = np.int64(at)
    return len(words), np.int64(at), DONE


@njit(cache=True, nogil=True)
def add_up(documents: Array, ends: Array, ids: Array, weights: Array, out: Array) -> None:
    """Adds each slot's weights to the row of its document."""
    for slot in range(len(documents)):
        for i in range(ends[slot], ends[slot + 1]):
            out[documents[slot], ids[i]] += weights[i]


@njit(cache=True, nogil=True)
def shuffle(words: Array, ends: Array, stream: Array) -> bool:
    """Each document's words in random order (Fisher and Yates), in place; or that the stream was too short."""
    cursor, first = 0, 0
    for document in range(len(ends)):
        for left in range(ends[document] - first, 1, -1):
            most = np.uint64(left)
            rest = (np.uint64(0) - most) % most  # 2^64 modulo `left`: words below it would favour some places
            while True:
                if cursor == len(stream):
                    return False
                word = stream[cursor]
                cursor += 1
                if word >= rest:
                    break
            one, other = first + left - 1, first + np.int64(word % most)
            words[one], words[other] = words[other], words[one]
        first = ends[document]
    return True
