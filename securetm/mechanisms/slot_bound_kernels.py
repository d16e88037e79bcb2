"""The inner loop of noise on token slots: a keystream, ladders of chances, and each slot's weights one after the other.

It makes no randomness. It does not run in constant time: no claim holds against an adversary that times single slots. What
runs for every slot is inlined, because counting references to the arrays it gets takes longer than drawing a few weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from securetm.compiled import njit
from securetm.contracts import Array

FIRST_BITS = 16  # of a draw; most are decided by them, nearly all others by 64 bits more
QUICK_BITS = 13  # of these, which decide most draws: a table of so many places stays in the first cache
MORE_WORDS = 4  # of 64 bits that a bound has besides, compared as far as it takes
EVEN_BITS = 7  # in all but 2^-7 of cases a step's last bits are even chances, which need no ladder
UNEVEN = (1 << EVEN_BITS) - 1
LAWS = 4
LAW: tuple[Any, ...] = tuple(np.int64(law) for law in range(LAWS))  # a plain 0 is a type of its own to the compiler
GAPS, HIGH, LOW, SIGNS = LAW
PAGE = (1 << FIRST_BITS) + 1
DONE, FULL, SHORT = 0, 1, 2  # why `fill` came back: all slots are done, no room for one more, its stream was too short
REST, HALF, LAST = np.uint16(FIRST_BITS - QUICK_BITS), 2 * FIRST_BITS - QUICK_BITS, (1 << FIRST_BITS) - 1
ONE, TWO, THREE, WORD = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)  # places in a stream of 16 bits each
MOST_OF_A_STEP = 3 * (1 + 4 * MORE_WORDS) + 1  # places of the rest that one coordinate takes at most


class BoundTables(NamedTuple):
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
def _drawn(law: int, first: Any, book: Array, rest: Array, cursor: Any) -> Any:
    """The draw that has these first bits, and where the rest goes on. Of bounds that agree so far, each word leaves fewer."""
    here = law * PAGE + np.int64(first)
    place, last = np.int64(book[here]), np.int64(book[here + 1])
    further, more = np.int64(0), (len(book) - LAWS * PAGE) // MORE_WORDS
    while place < last and further < MORE_WORDS:
        word = _word(rest, cursor)
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


@njit(cache=True, nogil=True, inline="always")
def _far(first: Any, last: Any, low_bits: int, sure: Array, book: Array, rest: Array, cursor: Any) -> Any:
    """How many steps above the least these first and last bits put the noise, and where the rest goes on."""
    far = np.int64(sure[HIGH, first])
    if far < 0:
        far, cursor = _drawn(HIGH, first, book, rest, cursor)
    if low_bits == 0:
        return far, cursor
    if last & UNEVEN != UNEVEN:
        return (far << low_bits) + np.int64(last >> EVEN_BITS), cursor
    low, cursor = np.int64(sure[LOW, rest[cursor]]), cursor + ONE
    if low < 0:
        low, cursor = _drawn(LOW, rest[cursor - ONE], book, rest, cursor)
    return (far << low_bits) + low, cursor


@njit(cache=True, nogil=True, inline="always")
def _own(one: int, low_bits: int, sure: Array, book: Array, rest: Array, cursor: Any) -> Any:
    """A count of 1 with its noise, in steps, and where the rest goes on."""
    sign, first, last = rest[cursor], rest[cursor + ONE], rest[cursor + TWO]
    positive, cursor = np.int64(sure[SIGNS, sign]), cursor + THREE
    if positive < 0:
        positive, cursor = _drawn(SIGNS, sign, book, rest, cursor)
    far, cursor = _far(first, last, low_bits, sure, book, rest, cursor)
    return (one + far if positive else one - 1 - far), cursor


@njit(cache=True, nogil=True, inline="always")
def _placed(
    own: Any, reach: Any, stream: Array, part: Any, tables: Any, rest: Array, left: Any, ids: Array, start: Any
) -> tuple[Any, Any, Any, Any]:
    """Writes the words with a count, from one gap to the next, and the slot's own word among them where it is kept.

    Returns where they end, the own word's place, whether a gap led to it too, and where the rest goes on: beyond its end if a
    stream is too short.
    """
    (word, kept), (size, limit), (begin, end), (quick, sure, book), (cursor, stop) = own, reach, part, tables, left
    at, here, place, own, met = start, np.int64(-1), np.int64(size if word < 0 else word), start, np.int64(0)
    for i in range(begin, end):
        gap = np.int64(quick[stream[i] >> REST])
        if gap < 0:
            gap = np.int64(sure[GAPS, stream[i]])
        if gap < 0:
            if cursor > stop:
                break
            gap, cursor = _drawn(GAPS, stream[i], book, rest, cursor)
            if gap == limit:
                here += limit
                continue
        here += gap + 1
        if here >= place:  # the end of the slot too: beyond it there is nothing
            if place < size:
                own, met, place = at, np.int64(here == word), np.int64(size)
                ids[at] = word
                at += kept
                if met:
                    continue
            if here >= size:
                return at, own, met, cursor
        ids[at] = here
        at += ONE
    return at, own, met, stop + ONE


@njit(cache=True, nogil=True, inline="always")
def _weighed(
    n: Any, scale: Any, stream: Array, begin: Any, tables: Any, rest: Array, left: Any, place: Any, again: Array, weights: Array
) -> Any:
    """Writes the weights of n counts from `at` on; those from number `upto` on are shifted by `shift` places.

    Returns where the rest goes on, beyond its end if it is too short. Counts that few bits do not decide are drawn afterwards.
    """
    (low_bits, least, most, grid), (quick, sure, book), (cursor, stop), (at, upto, shift) = scale, tables, left, place
    bits, never = (EVEN_BITS, UNEVEN) if low_bits else (FIRST_BITS, 1 << FIRST_BITS)
    undecided: Any = np.uint64(0)
    for i in range(n):
        word = np.int64(stream[begin + i])
        high, last = np.int64(quick[np.uint64(word >> HALF)]), word & LAST
        far = np.int32((high << low_bits) + (last >> bits))
        weights[at + i + (shift if i >= upto else np.uint64(0))] = np.float64(min(np.int32(least) + far, np.int32(most))) * grid
        again[undecided] = i
        undecided += np.uint64((high < 0) | (last & UNEVEN == never))
    for j in range(undecided):
        if cursor > stop:
            return cursor
        drawn = np.uint64(again[j])
        word = np.int64(stream[begin + drawn])
        first, last = np.uint64(word >> FIRST_BITS), word & LAST
        high = np.int64(sure[HIGH, first])
        if high < 0:
            high, cursor = _drawn(HIGH, first, book, rest, cursor)
        low = last >> bits
        if last & UNEVEN == never:
            low = np.int64(sure[LOW, rest[cursor]])
            cursor += ONE
            if low < 0:
                low, cursor = _drawn(LOW, rest[cursor - ONE], book, rest, cursor)
        far = np.int32((high << low_bits) + low)
        if (
            shift <= ONE or drawn + ONE != upto
        ):  # a word that is not kept gives its noise's place to the next one, written before
            weights[at + drawn + (shift if drawn >= upto else np.uint64(0))] = (
                np.float64(min(np.int32(least) + far, np.int32(most))) * grid
            )
    return cursor


@njit(cache=True, nogil=True)
def fill(streams: Any, words: Array, law: Any, out: Any) -> tuple[Any, Any, Any]:
    """Computes the non-zero weights of the slots that hold these words, from each slot's part of the streams.

    The words of a slot's weights rise. A negative word is none. The slot's own word is weighed first, and every other
    coordinate draws the same whatever that word is. A gap of `limit` says only that there is nothing so far. Returns how many
    slots were done, how many weights there are now, and why it came back. A slot that read beyond its own part of the rest is
    undone; the last slot needs MOST_OF_A_STEP readable places there. Two loops do what few bits decide, which is most of it;
    unsigned places save a test of their sign.
    """
    gaps, steps, rest, stride, rooms = streams
    size, one, least, most, limit, low_bits, grid, quick_gaps, quick_high, sure, book = law
    ends, ids, weights, start = out
    at, again = np.uint64(start), np.empty(rooms[1] + 1, np.int32)
    for slot in range(len(words)):
        if len(ids) - np.int64(at) <= size:  # one place more, where a word is written that may not stay
            return slot, np.int64(at), FULL
        cursor, word = np.uint64(slot * (stride // 2)), np.int64(words[slot])
        stop = cursor + np.uint64(rooms[2])
        own, after = _own(one, low_bits, sure, book, rest, cursor)
        kept = np.uint64(word >= 0 and own >= least)
        first = np.uint64(slot * (stride // 2))
        upto = first + np.uint64(rooms[0])
        tables = (quick_gaps, sure, book)
        end, place, met, after = _placed((word, kept), (size, limit), gaps, (first, upto), tables, rest, (after, stop), ids, at)
        drawn = end - at - kept + np.uint64(met)
        if after > stop or drawn > np.uint64(rooms[1]):
            return slot, np.int64(at), SHORT
        first, upto, shift = np.uint64(slot * (stride // 4)), place - at + np.uint64(met), kept - np.uint64(met)
        scale, tables = (low_bits, least, most, grid), (quick_high, sure, book)
        after = _weighed(drawn, scale, steps, first, tables, rest, (after, stop), (at, upto, shift), again, weights)
        if after > stop:
            return slot, np.int64(at), SHORT
        if kept:  # where both were drawn, in the place of the noise that would be there without the word
            weights[place] = min(own, most) * grid
        at = end
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
    """Shuffles each document's words in place (Fisher and Yates). Returns False if the stream was too short."""
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
