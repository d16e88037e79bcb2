"""Which cells of a noised table of topics x words stand above the noise, at a false-discovery rate. It reads no document.

The claim of a cell: in the sum *without* noise, the word is more frequent in the topic than the word's total times the topic's
share say. It is about this one sum. It does not say that the topic is a theme of the world, nor that another run, other
documents or another start would find it: where documents are split by chance, or by a start that somebody chose, the parts
differ in truth. All here is a function of an opened answer, so it costs no privacy.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from securetm.contracts import Array, State, TopicModel
from securetm.models.quality import top_words

RATE = 0.05  # the expected share of false ones among all cells that are said to stand above the noise
_KNOWN = 5.0  # deviations by which the table's total must stand above its own noise: below, no expectation is known


def top_words_above_noise(model: TopicModel, state: State, n: int = 10) -> list[list[bool]] | None:
    """Whether each of a topic's heaviest words stands above the noise, heaviest first; None where that is not tested."""
    above = model.above_noise(state)
    if above is None:
        return None
    return [above[topic, words].tolist() for topic, words in enumerate(top_words(model.topics(state), n))]


def stand_above(counts: Array, deviation: Array | float, rate: float = RATE) -> Array:
    """Whether each count stands above the noise, of a known deviation that may differ by word.

    It is the procedure of Benjamini and Hochberg (1995) over *all* cells: the heaviest words of a topic are chosen by the same
    noise, so a procedure over these alone would be wrong. Cells share their expectations' noise, so that they are weakly and
    negatively correlated (by about -1 over the number of topics or words).
    """
    chances = log_ndtr(-deviations_above(counts, deviation)).ravel()
    order = np.argsort(chances, kind="stable")
    limits = np.log(rate) + np.log(np.arange(1, len(order) + 1) / len(order))
    below = np.flatnonzero(chances[order] <= limits)
    found = np.zeros(len(order), dtype=bool)
    found[order[: below[-1] + 1 if len(below) else 0]] = True
    return found.reshape(counts.shape)


def deviations_above(counts: Array, deviation: Array | float) -> Array:
    """How many deviations each count is above its expectation: its word's total times its topic's share, in this table.

    The deviations are those of the count less its expectation, which has noise too: where noise e of deviation d_v is added to
    word v, p is the share of topic k and q that of word w, the difference moves by the sum over all j and v of
    e_jv ([j = k] - p) ([v = w] - q), and by a product of two sums of noise over the total. Without a total there is no
    expectation, and no count is above it.
    """
    counts = np.asarray(counts, dtype=np.float64)
    noise = np.broadcast_to(np.square(np.asarray(deviation, dtype=np.float64)), counts.shape[1:])  # of a word, in every topic
    topics, words, whole = counts.sum(axis=1), counts.sum(axis=0), float(counts.sum())
    of_all = len(counts) * float(noise.sum())
    if whole <= _KNOWN * np.sqrt(of_all) or of_all == 0:
        return np.full(counts.shape, -np.inf)
    p, q = np.clip(topics / whole, 0.0, 1.0), np.clip(words / whole, 0.0, 1.0)
    by_topic = np.square(1.0 - p) + (len(p) - 1) * np.square(p)
    by_word = noise * np.square(1.0 - q) + np.square(q) * (noise.sum() - noise)
    variance = np.outer(by_topic, by_word) + noise.sum() * len(p) * noise / whole**2
    found: Array = (counts - np.outer(topics / whole, words)) / np.sqrt(variance)
    return found
