"""Topics that no document made: what a figure is worth is seen beside what these reach.

Whatever uses public vectors is to be compared with clusters of the vectors alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from securetm.corpus.word_vectors import WordVectors
from securetm.quality.judged_topics import JudgedTopics

RANDOM, CLUSTERS = "random topics", "vectors alone"
CONTROLS = (RANDOM, CLUSTERS)
_SHARPNESS = 8.0  # of a cluster's words: a word's weight is exp of so many times its cosine to the middle
_SPREAD = 0.05  # of random topics: a few words are heavy


def random_topics(words: Sequence[str], topics: int, seed: int = 0) -> JudgedTopics:
    """Each topic's weights are drawn at random, so its heaviest words are any words of the vocabulary."""
    drawn = np.random.default_rng(seed).gamma(_SPREAD, 1.0, (topics, len(words))) + 1e-12
    return JudgedTopics.of_weights(RANDOM, drawn, words)


def clustered_topics(words: Sequence[str], topics: int, vectors: WordVectors, seed: int = 0) -> JudgedTopics | None:
    """K-means of the words' vectors; a topic's heaviest words are those whose vectors point to the middle of the cluster.

    None where fewer words have a vector than there are topics.
    """
    from sklearn.cluster import KMeans  # takes long to import

    known = vectors.known(words)
    if len(known) < topics:
        return None
    middles = KMeans(topics, n_init=4, random_state=seed).fit(vectors.matrix(known)).cluster_centers_
    middles /= np.maximum(np.linalg.norm(middles, axis=1, keepdims=True), 1e-12)
    cosines = middles @ vectors.matrix(words).T  # 0 for a word without a vector
    weights = np.exp(_SHARPNESS * (cosines - cosines.max(axis=1, keepdims=True)))
    return JudgedTopics.of_weights(CLUSTERS, weights, words)
