"""Who is in a sum of word counts: one equation for each word, one unknown for each candidate document.

A table of topics says how often each word stood in all documents together, and that is a sum over those that were there. It
knows no run; noise makes the equations vague, and how much of it there is comes with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from securetm.contracts import Array

_STEPS = 100
_VAGUE = 0.1  # of a word's own spread: what equations leave out, such as documents that are no candidates
_GUESSED = 0.5  # how far whether a document is there may be from one half


def presence(
    counts: Any, totals: Array, share: float, deviation: float = 0.0, most: float = np.inf, each: float = np.inf
) -> Array:
    """How likely each document is part of the total, as a number that ranks documents (least squares with a prior, damped).

    `totals` says of each word how often it stands in all documents that are there, about `share` of them; `deviation` is that
    of the noise in it. A document counted with at most `each` of a word and `most` in all where a profile bounds them; which of
    its words these are, nobody but its party knows, and so a long document's words are each there or not, as if by chance.
    """
    rows, kept = _bounded(counts, most, each)
    spread = np.asarray(rows.multiply(rows).sum(axis=0)).ravel() / 4
    unsure = share * (rows.multiply((1.0 - kept)[:, None])).sum(axis=0)
    scale = 1.0 / np.sqrt(_VAGUE**2 * np.maximum(spread, 0.25) + np.asarray(unsure).ravel() + deviation**2)
    missing = (totals - share * np.asarray(rows.sum(axis=0)).ravel()) * scale
    found: Array = lsqr((rows.multiply(scale[None])).T.tocsr(), missing, damp=1 / _GUESSED, iter_lim=_STEPS)[0]
    return found


def _bounded(counts: Any, most: float, each: float) -> tuple[Any, Array]:
    """What a document is counted with on average, and what share of its words that is."""
    rows = sparse.csr_array(counts, dtype=np.float64, copy=True)
    rows.data = np.minimum(rows.data, each)
    kept = np.minimum(1.0, most / np.maximum(np.asarray(rows.sum(axis=1)).ravel(), 1.0))
    return sparse.csr_array(rows.multiply(kept[:, None])), kept
