"""Whole counts from a network's input: the log1p of each count, normalised to length one. Pure arithmetic.

The inverse is exact if one count fixes the scale. A document whose counts are all equal looks the same for any count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from securetm.contracts import Array

_LEAST_COUNTS = range(1, 9)  # how often the rarest word of a document may occur
_WHOLE = 0.1  # the largest distance of a count from a whole number
_PRESENT = 0.003  # of a document's length: the input of a word that occurs once among 100,000 others
_MOST = 10_000  # no word occurs so often in a document
_LONGEST = float(np.log1p(_MOST))


def readings(inputs: Array) -> list[Array]:
    """Every list of whole counts with these inputs, the smallest first; none if no document has them."""
    length = float(np.linalg.norm(inputs))
    if not np.isfinite(length) or length == 0.0:
        return []
    there = inputs / length > _PRESENT
    if not there.any():
        return []
    known = np.where(there, inputs / length, 0.0)
    least = float(known[there].min())
    tried = [np.expm1(np.minimum(known * (np.log1p(count) / least), _LONGEST)) for count in _LEAST_COUNTS]
    misses = [float(np.abs(counts - np.rint(counts)).max()) for counts in tried]
    fitting = [counts for counts, miss in zip(tried, misses, strict=True) if miss < _WHOLE]
    nearest = fitting or [tried[int(np.argmin(misses))]]
    return [np.rint(counts).astype(np.int64) for counts in nearest if counts.max() < _MOST]


def best_readings(possible: Sequence[Sequence[Array]], estimates: Array) -> list[Array]:
    """One list of counts for each document: the one that fits the document's own words best.

    `estimates` holds how often each word occurs in all documents together, from the decoder's gradient
    (`closed_form.estimated_counts`). Only words that no other document has are compared with it.
    """
    firsts = [readings_of[0] for readings_of in possible]
    documents_with = np.sum([first > 0 for first in firsts], axis=0) if firsts else np.zeros(len(estimates))
    chosen = []
    for several in possible:
        own = (several[0] > 0) & (documents_with == 1)
        misses = [float(np.abs(counts[own] - estimates[own]).sum()) for counts in several]
        chosen.append(several[int(np.argmin(misses))])
    return chosen
