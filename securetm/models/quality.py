"""Quality figures of topics: coherence, diversity, perplexity and agreement, from counts and topics that the caller holds.

A federation measures coherence and perplexity through the questions of `queries.py`; a party uses its own corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from securetm.contracts import Array

Z = 1.96  # deviations of a normal variable that hold 95 of 100


def top_words(topics: Array, n: int = 10) -> Array:
    """The n heaviest words of each topic as word ids, heaviest first; of equally heavy words the smaller id comes first."""
    return np.argsort(-np.asarray(topics), axis=1, kind="stable")[:, :n]


def named_topics(topics: Array, vocabulary: Sequence[str], n: int = 10) -> list[list[str]]:
    """The heaviest words of each topic."""
    return [[vocabulary[word] for word in row] for row in top_words(topics, n)]


def diversity(top: Array) -> float:
    """The share of distinct words among all top words: 1 if no two topics share one."""
    return np.unique(top).size / top.size


def perplexity(log_likelihood: Array | float, tokens: Array | float) -> float:
    """Per-word perplexity of documents, from each one's log-likelihood (natural logarithm) and number of words.

    Without any word it is NaN.
    """
    words = float(np.sum(tokens))
    return float(np.exp(-np.sum(log_likelihood) / words)) if words > 0 else float("nan")


def mean_per_word(found: Array, tokens: Array, weights: Array | float = 1.0) -> tuple[float, float, float]:
    """A mean per word over documents, and the ends of its interval; `weights` are the number of documents of each entry.

    The interval is the normal one of a ratio over documents: 95 of 100 hold, where documents are many and independent.
    """
    words = float(np.sum(weights * tokens))
    if words <= 0:
        return float("nan"), float("nan"), float("nan")
    mean = float(np.sum(weights * found) / words)
    away = Z * float(np.sqrt(np.sum(np.square(weights * (found - mean * tokens))))) / words
    return mean, mean - away, mean + away


def perplexity_with_interval(log_likelihood: Array, tokens: Array) -> dict[str, float]:
    """Per-word perplexity of documents, with the ends of its interval."""
    mean, low, high = mean_per_word(log_likelihood, tokens)
    return {"held_out": float(np.exp(-mean)), "held_out_low": float(np.exp(-high)), "held_out_high": float(np.exp(-low))}


# ---- coherence -----------------------------------------------------------------------------------------------------


def npmi(together: Array, first: Array, second: Array, total: float) -> Array:
    """Normalised pointwise mutual information of word pairs, from how many of `total` documents or windows hold them.

    A pair that never occurs together has -1, and so has every pair with a word that never occurs. A pair that occurs together
    everywhere has 0.
    """
    some = (together > 0) & (together < total)
    joint = np.where(some, together, 1) / max(total, 2)
    apart = np.where(some, np.asarray(first, dtype=float) * second, 1.0) / max(total, 1) ** 2
    scores = np.log(joint / apart) / -np.log(joint)
    return np.where(some, scores, np.where(together > 0, 0.0, -1.0))


def pairs_within(top: Array) -> tuple[Array, Array]:
    """The columns of `top` that make up each unordered pair of one topic's words."""
    return np.triu_indices(top.shape[1], k=1)


def document_npmi(top: Array, counts: Any) -> Array:
    """Each topic's mean NPMI over pairs of its top words, by the documents that hold both words."""
    words, place = _distinct(top)
    present = sparse.csr_array(counts)[:, words].astype(bool).astype(np.int64)
    return _coherence(place, (present.T @ present).toarray(), present.shape[0])


def window_npmi(top: Array, tokens: Array, token_ends: Array, window: int = 10) -> Array:
    """Each topic's mean NPMI over pairs of its top words, by the sliding windows that hold both words.

    Windows slide by one word and stay within a document; a shorter document is one window (C_NPMI of Röder et al. 2015).
    Negative ids are words outside the vocabulary: they take a place in the window and are not counted.
    """
    words, place = _distinct(top)
    tokens = np.asarray(tokens, dtype=np.int32)
    column = np.full(max(int(words[-1]), int(tokens.max(initial=0))) + 1, -1, dtype=np.int32)
    column[words] = np.arange(len(words))
    relevant = np.where(tokens < 0, np.int32(-1), column[tokens])
    together, windows = _count_windows(relevant, np.asarray(token_ends, dtype=np.int64), len(words), window)
    return _coherence(place, together + np.triu(together, 1).T, windows)


def embedding_coherence(top: Array, vectors: Array) -> Array:
    """Each topic's mean cosine over pairs of its top words' vectors; a word whose vector is zero is similar to none."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths > 0)[top]
    cosines = unit @ unit.transpose(0, 2, 1)
    first, second = pairs_within(top)
    means: Array = cosines[:, first, second].mean(axis=1)
    return means


def _distinct(top: Array) -> tuple[Array, Array]:
    """The distinct top words in order, and the place of each entry of `top` among them."""
    words, place = np.unique(top, return_inverse=True)
    return words, place.reshape(top.shape)


def _coherence(place: Array, together: Array, total: float) -> Array:
    """Means of NPMI, where `together` holds counts of pairs and on its diagonal counts of words."""
    first, second = (place[:, side] for side in pairs_within(place))
    alone = np.diagonal(together)
    means: Array = npmi(together[first, second], alone[first], alone[second], total).mean(axis=1)
    return means


@njit(cache=True)
def _count_windows(tokens: Array, ends: Array, words: int, window: int) -> tuple[Array, int]:
    """The number of windows with each pair (upper triangle) and with each word (diagonal); and the number of all windows.

    `inside` lists the relevant words of the current window, each once: a step drops one word, takes one in and counts.
    """
    together = np.zeros((words, words), dtype=np.int64)
    copies = np.zeros(words, dtype=np.int64)
    inside = np.empty(window + 1, dtype=np.int64)
    windows = 0
    start = 0
    for end in ends:
        held = 0
        for place in range(start, end):
            held = _take_in(tokens[place], copies, inside, held)
            if place - window >= start:
                held = _drop(tokens[place - window], copies, inside, held)
            if place - window + 1 >= start or place + 1 == end:
                windows += 1
                _count(together, inside, held)
        copies[:] = 0
        start = end
    return together, windows


@njit(cache=True, inline="always")
def _take_in(word: int, copies: Array, inside: Array, held: int) -> int:
    if word < 0:
        return held
    copies[word] += 1
    if copies[word] > 1:
        return held
    inside[held] = word
    return held + 1


@njit(cache=True, inline="always")
def _drop(word: int, copies: Array, inside: Array, held: int) -> int:
    if word < 0:
        return held
    copies[word] -= 1
    if copies[word] > 0:
        return held
    for i in range(held):
        if inside[i] == word:
            inside[i] = inside[held - 1]
            break
    return held - 1


@njit(cache=True, inline="always")
def _count(together: Array, inside: Array, held: int) -> None:
    for i in range(held):
        for j in range(i, held):
            together[min(inside[i], inside[j]), max(inside[i], inside[j])] += 1


# ---- agreement of two models, or of a model with the truth (gFedNTM) -------------------------------------------------


def affinity(left: Array, right: Array) -> Array:
    """One minus the squared Hellinger distance of every row of `left` to every row of `right`: 1 if equal, 0 if disjoint."""
    similar: Array = np.sqrt(left) @ np.sqrt(right).T
    return similar


def document_similarity_score(true: Array, inferred: Array, block: int = 512) -> float:
    """DSS, gFedNTM Eq. 5: the difference of two document-topic mixtures in the similarity of documents; 0 is best.

    The documents are compared `block` rows at a time: memory grows with documents, not with pairs of documents.
    """
    off = 0.0
    for start in range(0, len(true), block):
        rows = slice(start, start + block)
        difference = np.abs(affinity(true[rows], true) - affinity(inferred[rows], inferred))
        np.fill_diagonal(difference[:, rows], 0.0)  # a document is not compared with itself
        off += float(difference.sum())
    return off / len(true)


def topic_similarity_score(true: Array, inferred: Array) -> float:
    """TSS, gFedNTM Eq. 6: the sum over true topics of the affinity to the closest inferred one; at best their number."""
    return float(affinity(true, inferred).max(axis=1).sum())


def mover_distance(top: Array, other: Array, vectors: Array) -> float:
    """Word mover's distance of two lists of equally many words: the mean distance between words, optimally paired."""
    from scipy.optimize import linear_sum_assignment  # takes long to import, and no command needs it

    apart = np.linalg.norm(vectors[top][:, None] - vectors[other][None], axis=2)
    return float(apart[linear_sum_assignment(apart)].mean())


def mean_mover_distance(top: Array, other: Array, vectors: Array) -> float:
    """AMWMD, gFedNTM Eq. 7: the sum over topics of the word mover's distance to the closest of the other model's topics."""
    return sum(min(mover_distance(mine, theirs, vectors) for theirs in other) for mine in top)
