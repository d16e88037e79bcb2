"""Coherence of topics: by sliding windows (NPMI, and c_v of Röder, Both and Hinneburg 2015), and by word vectors (FedNMF).

A window slides by one word and stays within a document; a shorter document is one window. Negative ids are words outside the
vocabulary: they take a place in the window and are not counted.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from securetm.contracts import Array
from securetm.models.quality import distinct_words, npmi_of_topics, pairs_within

_SMALL = 1e-12  # the paper's epsilon, in place of a probability of zero


def window_npmi(top: Array, tokens: Array, token_ends: Array, window: int = 10) -> Array:
    """Each topic's mean NPMI over pairs of its top words, by the sliding windows that hold both words (the paper's C_NPMI)."""
    place, together, windows = _windows_with(top, tokens, token_ends, window)
    return npmi_of_topics(place, together, windows)


def c_v(top: Array, tokens: Array, token_ends: Array, window: int = 110) -> Array:
    """Each topic's c_v: how alike each top word is to all of them together, in the company that it keeps.

    A word's vector holds its NPMI with each of the topic's top words, itself included, by windows of 110 words. The topic's
    vector is their sum, and c_v the mean cosine of the words' vectors to it. A word that never occurs has a vector of zeros,
    and is similar to none.
    """
    place, together, windows = _windows_with(top, tokens, token_ends, window)
    return np.array([_one_against_all(together[np.ix_(row, row)], windows) for row in place])


def _one_against_all(together: Array, windows: int) -> float:
    """The mean cosine of each word's vector of NPMI to the sum of all (segmentation of one against the set)."""
    joint = together / max(windows, 1) + _SMALL
    alone = np.diagonal(together) / max(windows, 1)
    there = np.outer(alone, alone) > 0
    ratio = np.log(joint / np.where(there, np.outer(alone, alone), 1.0))
    vectors = np.where(there, ratio / -np.log(np.minimum(joint, 1 - _SMALL)), 0.0)
    whole = vectors.sum(axis=0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(whole)
    return float(np.mean(np.divide(vectors @ whole, lengths, out=np.zeros(len(vectors)), where=lengths > 0)))


# ---- counting windows ------------------------------------------------------------------------------------------------


def _windows_with(top: Array, tokens: Array, token_ends: Array, window: int) -> tuple[Array, Array, int]:
    """The place of each top word among the distinct ones; how many windows hold each pair of these; how many there are."""
    words, place = distinct_words(top)
    tokens = np.asarray(tokens, dtype=np.int32)
    column = np.full(max(int(words[-1]), int(tokens.max(initial=0))) + 1, -1, dtype=np.int32)
    column[words] = np.arange(len(words))
    relevant = np.where(tokens < 0, np.int32(-1), column[tokens])
    together, windows = _count_windows(relevant, np.asarray(token_ends, dtype=np.int64), len(words), window)
    return place, together + np.triu(together, 1).T, windows


@njit(cache=True)
def _count_windows(tokens: Array, ends: Array, words: int, window: int) -> tuple[Array, int]:
    """The number of windows with each pair (upper triangle) and with each word (diagonal); and the number of all windows.

    `inside` lists the relevant words of the current window, each once, and `since` the window at which each came in. Windows
    are counted when a word leaves: a step costs nothing as long as the same words stay.
    """
    together = np.zeros((words, words), dtype=np.int64)
    copies, since = np.zeros(words, dtype=np.int64), np.zeros(words, dtype=np.int64)
    inside = np.empty(min(window, words) + 1, dtype=np.int64)
    windows = 0
    start = 0
    for end in ends:
        held = 0
        for place in range(start, end):
            now = max(place - window + 1 - start, 0)
            if place - window >= start:
                held = _drop(tokens[place - window], now, copies, since, inside, held, together)
            held = _take_in(tokens[place], now, copies, since, inside, held)
        here = max(end - start - window + 1, 1) if end > start else 0
        while held > 0:
            copies[inside[held - 1]] = 1
            held = _drop(inside[held - 1], here, copies, since, inside, held, together)
        windows += here
        start = end
    return together, windows


@njit(cache=True, inline="always")
def _take_in(word: int, now: int, copies: Array, since: Array, inside: Array, held: int) -> int:
    if word < 0:
        return held
    copies[word] += 1
    if copies[word] > 1:
        return held
    since[word] = now
    inside[held] = word
    return held + 1


@njit(cache=True, inline="always")
def _drop(word: int, now: int, copies: Array, since: Array, inside: Array, held: int, together: Array) -> int:
    """Takes one occurrence out. Where it was the last one, the word's windows with every word beside it are counted."""
    if word < 0:
        return held
    copies[word] -= 1
    if copies[word] > 0:
        return held
    gone = 0
    for i in range(held):
        other = inside[i]
        together[min(word, other), max(word, other)] += now - max(since[word], since[other])
        if other == word:
            gone = i
    inside[gone] = inside[held - 1]
    return held - 1


def embedding_coherence(top: Array, vectors: Array) -> Array:
    """Each topic's mean cosine over pairs of its top words' vectors; a word whose vector is zero is similar to none.

    `top` holds row numbers of `vectors`, one row of them for each topic.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths > 0)[top]
    cosines = unit @ unit.transpose(0, 2, 1)
    first, second = pairs_within(top)
    means: Array = cosines[:, first, second].mean(axis=1)
    return means
