"""Quality figures of topics: coherence, diversity, perplexity and agreement, from counts and topics that the caller holds.

A federation measures coherence and perplexity through the questions of `questions/model_quality.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.extras import sparse

Z = 1.96  # deviations of a normal variable that hold 95 of 100


def top_words(topics: Array, n: int = 10) -> Array:
    """The n heaviest words of each topic as word ids, heaviest first; of equally heavy words the smaller id comes first."""
    return np.argsort(-np.asarray(topics), axis=1, kind="stable")[:, :n]


def named_topics(topics: Array, vocabulary: Sequence[str], n: int = 10) -> list[list[str]]:
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
    words, place = distinct_words(top)
    present = sparse.csr_array(counts)[:, words].astype(bool).astype(np.int64)
    return npmi_of_topics(place, (present.T @ present).toarray(), present.shape[0])


def distinct_words(top: Array) -> tuple[Array, Array]:
    """The distinct top words in order, and the place of each entry of `top` among them."""
    words, place = np.unique(top, return_inverse=True)
    return words, place.reshape(top.shape)


def npmi_of_topics(place: Array, together: Array, total: float) -> Array:
    """Means of NPMI, where `together` holds counts of pairs and on its diagonal counts of words."""
    first, second = (place[:, side] for side in pairs_within(place))
    alone = np.diagonal(together)
    found: Array = npmi(together[first, second], alone[first], alone[second], total).mean(axis=1)
    return found
