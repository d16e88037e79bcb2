"""Coherence of topics by word vectors (FedNMF's "WE coherence"). Whose vectors they are is said in `word_vectors.py`."""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array
from securetm.models.quality import pairs_within


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
