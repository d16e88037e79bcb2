"""How well two models agree, or a model with the truth that made its documents (gFedNTM). It compares weights, not words."""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array


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
