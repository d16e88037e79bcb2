"""Which candidates are in a sum of word counts: one linear equation for each word, one unknown for each candidate.

A table of topics shows how often each word occurs in all documents together, which is a sum over the documents that are in it.
Noise makes the equations inexact; its deviation is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from securetm.contracts import Array

_STEPS = 100
_VAGUE = 0.1  # of a word's variance, for what the equations leave out, such as documents that are no candidates
_GUESSED = 0.5  # the prior deviation of a document's presence from one half


def presence(
    counts: Any, totals: Array, share: float, deviation: float = 0.0, most: float = np.inf, each: float = np.inf
) -> Array:
    """A score that ranks documents by how likely they are in the total (damped least squares with a prior).

    `totals` is each word's count in all documents that are in, about `share` of the candidates; `deviation` is that of its
    noise. Where a profile bounds rows, a document counts with at most `each` of a word and `most` words in all. Only its party
    knows which words these are, so each word of a long document is in with some probability.
    """
    rows, kept = _bounded(counts, most, each)
    spread = np.asarray(rows.multiply(rows).sum(axis=0)).ravel() / 4
    unsure = share * (rows.multiply((1.0 - kept)[:, None])).sum(axis=0)
    scale = 1.0 / np.sqrt(_VAGUE**2 * np.maximum(spread, 0.25) + np.asarray(unsure).ravel() + deviation**2)
    missing = (totals - share * np.asarray(rows.sum(axis=0)).ravel()) * scale
    found: Array = lsqr((rows.multiply(scale[None])).T.tocsr(), missing, damp=1 / _GUESSED, iter_lim=_STEPS)[0]
    return found


def _bounded(counts: Any, most: float, each: float) -> tuple[Any, Array]:
    """The mean counted row of each document, and the share of its words that are counted."""
    rows = sparse.csr_array(counts, dtype=np.float64, copy=True)
    rows.data = np.minimum(rows.data, each)
    kept = np.minimum(1.0, most / np.maximum(np.asarray(rows.sum(axis=1)).ravel(), 1.0))
    return sparse.csr_array(rows.multiply(kept[:, None])), kept
