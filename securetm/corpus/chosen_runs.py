"""Copies runs of an array one after the other: the words of chosen documents. It costs time by what is copied, and no index."""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array


def runs_of(values: Array, starts: Array, stops: Array) -> Array:
    """The values from each start up to its stop, one run after the other."""
    starts, stops = np.asarray(starts, dtype=np.int64), np.asarray(stops, dtype=np.int64)
    first = np.ones(len(starts), dtype=bool)  # runs that do not go on where the one before ended
    first[1:] = starts[1:] != stops[:-1]
    last = np.concatenate([first[1:], [True]])[: len(stops)]
    runs = [values[start:stop] for start, stop in zip(starts[first].tolist(), stops[last].tolist(), strict=True)]
    return np.concatenate([values[:0], *runs])


def order_of(tokens: Array, token_ends: Array, sentence_ends: Array, rows: Array) -> dict[str, Array]:
    """The reading order of the documents with these row numbers, in that order."""
    stops = token_ends[rows]
    starts = np.where(rows > 0, token_ends[rows - 1], 0)
    ends = np.cumsum(stops - starts)
    first, last = (np.searchsorted(sentence_ends, of, side="right") for of in (starts, stops))
    moved = ends - stops  # by which each document's places change
    ends_of_sentences = runs_of(sentence_ends, first, last) + np.repeat(moved, last - first)
    return {"tokens": runs_of(tokens, starts, stops), "token_ends": ends, "sentence_ends": ends_of_sentences}
