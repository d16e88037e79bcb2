"""The places of topics on a map: topics that use words alike lie close together. The same topics give the same map.

Distances are roots of Jensen-Shannon divergences, which are a metric; classical multidimensional scaling lays them out.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from securetm.contracts import Array

_MOST_WORDS, _LEAST_WORDS = 2000, 400  # of a large vocabulary, the commonest ones; all others count as one word
_MOST_TERMS = 4 * 10**8  # of all divergences together: many topics are compared by fewer words


def distances(topics: Array) -> Array:
    """The distance of each topic to each: from 0, if they use all words alike, to 1, if they share none."""
    few = _fewer_words(topics)
    own = xlogy(few, few).sum(axis=1)
    found = np.zeros((len(few), len(few)))
    for number, topic in enumerate(few):
        mean = (few[number:] + topic) / 2
        found[number, number:] = (own[number:] + own[number]) / 2 - xlogy(mean, mean).sum(axis=1)
    roots: Array = np.sqrt(np.maximum(found + found.T, 0) / np.log(2))
    return roots


def places(topics: Array) -> Array:
    """Two coordinates of each topic, from -1 to 1. The map keeps its proportions."""
    square = np.square(distances(topics))
    inner = square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean()
    values, vectors = np.linalg.eigh(-inner / 2)
    axes = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0))
    axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    upward = np.sign(axes[np.argmax(np.abs(axes), axis=0), [0, 1]])  # an eigenvector may as well have the other sign
    middled = axes * upward - (axes.max(axis=0) + axes.min(axis=0)) / 2 * upward
    found: Array = middled / max(float(np.abs(middled).max()), 1e-12)
    return found


def _fewer_words(topics: Array) -> Array:
    most = max(_LEAST_WORDS, min(_MOST_WORDS, _MOST_TERMS // len(topics) ** 2))
    if topics.shape[1] <= most:
        return topics
    order = np.argsort(-topics.sum(axis=0), kind="stable")
    return np.column_stack([topics[:, order[:most]], topics[:, order[most:]].sum(axis=1)])
