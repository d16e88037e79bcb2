"""Word vectors in which public seed words are the middles of clusters: a public start has a topic for each line of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from securetm.contracts import Array
from securetm.models.fixed_order import product_transposed
from securetm.models.public_knowledge import clusters, of_length_one

_SHARP = 3.0  # the power of a cosine: a word is of the topics whose middles are far nearer than the others
_OWN = 0.5  # a word nearer than that to a line of seeds makes no other topic


def seeded_vectors(rows: Array, seeds: Sequence[Sequence[int]], topics: int) -> Array:
    """Words x topics, of vectors of length 1 and the places of the seed words of each line.

    The first topics are those of the lines, the others clusters of the words that are far from all seeds. A seed word is of its
    own topics alone.
    """
    middles = np.stack([rows[list(line)].mean(axis=0) for line in seeds])
    middles = of_length_one(middles)
    rest = rows[product_transposed(rows, middles).max(axis=1) < _OWN]
    middles = np.vstack([middles, clusters(rest, topics - len(seeds))]) if topics > len(seeds) else middles
    near: Array = np.maximum(product_transposed(rows, middles), 0.0) ** _SHARP
    for line in seeds:
        near[list(line)] = 0.0
    for topic, line in enumerate(seeds):
        near[list(line), topic] = 1.0
    return of_length_one(near)
