"""The longest document, and counts that fit into the numbers that hold them: public limits, checked when a corpus is read.

One document that is too long takes memory and time from all others of its party. Counts are held in 32 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from securetm.contracts import Array
from securetm.corpus.corpus_errors import TooManyWords, UnlikeParts
from securetm.errors import BadSetting

LONGEST = 1_000_000  # words of a document, where nobody says otherwise
MOST = 2**31 - 1  # words of a document that can be counted


def check_longest(where: str, longest: int) -> None:
    """Refuses a limit beyond what can be counted."""
    if not 1 <= longest <= MOST:
        raise BadSetting(where, "longest", f"{longest:,}", f"must lie between 1 and {MOST:,}")


def check_counts(counts: Any, longest: int) -> None:
    """Refuses counts that are negative or broken, and a document of more words than `longest`. They still are as given."""
    check_longest("from_counts", longest)
    if not counts.nnz:
        return
    data = counts.data
    if data.dtype.kind not in "biuf" or not np.isfinite(data).all() or (data != np.rint(data)).any() or data.min() < 0:
        raise BadSetting("from_counts", "matrix", "some entries", "must be whole numbers, zero or more")
    check_lengths(_lengths(counts), longest)


def check_stored(counts: Any) -> None:
    """Refuses counts out of a file that no corpus of ours can have written."""
    data = counts.data
    if data.dtype != np.int32 or (data.size and data.min() < 1) or (_lengths(counts) > MOST).any():
        raise ValueError("counts that no corpus has")


def check_token_ids(tokens: Array, words: int) -> None:
    """Refuses numbers of words that are none, before they are narrowed."""
    if tokens.size and (tokens.dtype.kind not in "iu" or tokens.min() < 0 or tokens.max() >= words):
        raise UnlikeParts("words", words, int(tokens.max()) + 1)


def check_lengths(lengths: Array, longest: int) -> None:
    """Refuses the first document that has more words than that."""
    if len(over := np.flatnonzero(lengths > longest)):
        raise TooManyWords(f"document {int(over[0]) + 1:,}", f"{lengths[over[0]]:,.0f}", longest)


def _lengths(counts: Any) -> Array:
    lengths: Array = np.asarray(counts.astype(np.float64).sum(axis=1)).ravel()
    return lengths
