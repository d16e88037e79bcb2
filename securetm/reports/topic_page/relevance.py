"""Which words a page needs, so that it can rank a topic's words by any relevance (Sievert and Shirley 2014).

The relevance of a word is `l log p(word | topic) + (1 - l) log (p(word | topic) / p(word))`. Here l goes in steps, and
logarithms are whole thousandths: the page ranks with the same whole numbers, so it never lacks a word that it should show.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array

STEPS = 20  # from l = 0 to l = 1
START = 12  # l = 0.6, which Sievert and Shirley's readers interpreted best
SHOWN = 20  # words of a topic, at any step
_FINENESS = 1000  # of a logarithm: a tenth of a per cent
_LEAST = 1e-12  # a share below it counts as zero, and its word comes after all others
_ZERO = -1_000_000


def logarithms(shares: Array) -> Array:
    """Natural logarithms in whole thousandths, as the page has them."""
    found = np.rint(_FINENESS * np.log(np.maximum(shares, _LEAST))).astype(np.int64)
    return np.where(shares < _LEAST, _ZERO, found)


def overall(topics: Array, shares: Array | None) -> Array:
    """The share of each word in all documents as the model sees them: its share in each topic, times the topic's share.

    Where no share of a topic is known, all topics count alike.
    """
    weights = np.full(len(topics), 1.0) if shares is None else np.maximum(shares, 1e-4)
    found: Array = weights / weights.sum() @ topics
    return found


def ranked(topic: Array, words: Array, step: int, shown: int = SHOWN) -> Array:
    """The first words at this step, by the logarithms of one topic and of all documents; of equals the first word."""
    relevance = STEPS * topic - (STEPS - step) * words
    keys = relevance * len(topic) - np.arange(len(topic))
    first = np.argpartition(-keys, min(shown, len(keys)) - 1)[:shown]
    found: Array = first[np.argsort(-keys[first])]
    return found


def candidates(topic: Array, words: Array, shown: int = SHOWN) -> Array:
    """All words that are among the first ones at some step, in the order of the vocabulary."""
    middle = ranked(topic, words, STEPS // 2, shown)
    rare = topic - words
    # Relevance is linear in l: a word that is behind all of these words at both ends is behind them everywhere.
    near = np.flatnonzero((topic >= topic[middle].min()) | (rare >= rare[middle].min()))
    found = [near[ranked(topic[near], words[near], step, shown)] for step in range(STEPS + 1)]
    return np.unique(np.concatenate(found))
