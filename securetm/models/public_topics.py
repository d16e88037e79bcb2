"""Topics made of public word vectors, before any document is read: clusters of words that are alike.

The same vectors give the same topics: numbers are rounded before anything is compared, sums have a fixed order, and nothing is
drawn at random. It asks nothing of documents.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array
from securetm.models.neural.fixed_order import add_product
from securetm.models.public_knowledge import MOST_DIMENSIONS, PublicKnowledge

_GRID = 4096.0  # steps in 1: vectors that differ less are the same
_ROUNDS = 50  # of k-means
_TURNS = 30  # of the search for the directions in which words differ most
_SHARP = 4.0  # how steeply a word's share of a topic falls with the angle between them
_MOST_WORDS = 1 << 11  # that seeds are searched among: of more, every n-th


def public_knowledge(vectors: Array, topics: int, frequencies: Array | None = None) -> PublicKnowledge:
    """Public knowledge over words with these vectors, a row of zeros for a word without one: `topics` clusters of them.

    A word without a vector has the same weight in every topic. With fewer vectors than topics, the topics that are left
    have all words alike. Frequencies make no topic: those of general texts made topics worse on every corpus that was tried.
    """
    rows = _compressed(_on_grid(np.asarray(vectors, dtype=np.float64)))
    middles = _clusters(rows[rows.any(axis=1)], topics)
    near = np.exp(_SHARP * np.vstack([_product_transposed(middles, rows), np.zeros((topics - len(middles), len(rows)))]))
    return PublicKnowledge(near / near.sum(axis=1, keepdims=True), rows.astype(np.float32), frequencies)


def _on_grid(rows: Array) -> Array:
    """Rows of length 1 whose numbers were rounded, so that a last bit of the source moves nothing."""
    rounded = np.rint(_of_length_one(rows) * _GRID)
    return _of_length_one(rounded)


def _of_length_one(rows: Array) -> Array:
    """Rows divided by their length; a row of zeros stays one."""
    lengths = np.sqrt(_row_sums(np.square(rows)))[:, None]
    scaled: Array = rows / np.where(lengths > 0, lengths, 1.0)
    return scaled


def _compressed(rows: Array) -> Array:
    """Rows of at most 64 numbers, of length 1: without what all words share, in the directions in which they differ most."""
    known = np.asarray(rows.any(axis=1))
    if not known.any():
        return np.zeros((len(rows), min(rows.shape[1], MOST_DIMENSIONS) or 1))
    apart = np.where(known[:, None], rows - rows[known].sum(axis=0) / known.sum(), 0.0)
    if rows.shape[1] > MOST_DIMENSIONS:
        apart = _product(apart, _directions(_product(np.ascontiguousarray(apart.T), apart)))
    compressed = _on_grid(apart)
    lost = known & ~np.asarray(compressed.any(axis=1))  # a single known word differs from nothing
    compressed[lost, 0] = 1.0
    return compressed


def _directions(together: Array) -> Array:
    """The directions in which a symmetric matrix is largest, by repeated products, in columns."""
    size = len(together)
    found = np.cos(np.outer(np.arange(1, size + 1), np.arange(1, MOST_DIMENSIONS + 1)))  # no direction is preferred
    for _ in range(_TURNS):
        found = _upright(_product(together, found))
    return found


def _upright(columns: Array) -> Array:
    """The columns made orthogonal, one after the other, each of length 1."""
    made = np.zeros_like(columns)
    for number in range(columns.shape[1]):
        column = columns[:, number : number + 1].copy()
        for _ in range(2):
            before = np.ascontiguousarray(made[:, :number])
            column -= _product(before, _product(np.ascontiguousarray(before.T), column)) if number else 0.0
        length = float(np.sqrt(np.square(column).sum()))
        made[:, number] = column[:, 0] / length if length > 0 else 0.0
    return made


def _clusters(rows: Array, most: int) -> Array:
    """The middles of clusters of these rows, of length 1: as many as are asked for, or as there are different rows."""
    if not len(rows):
        return rows
    middles = _seeds(rows[:: -(-len(rows) // _MOST_WORDS)], most)
    nearest = np.full(len(rows), -1)
    for _ in range(_ROUNDS):
        before, nearest = nearest, np.rint(_product_transposed(rows, middles) * _GRID).argmax(axis=1)
        if np.array_equal(before, nearest):
            break
        sums = np.zeros_like(middles)
        np.add.at(sums, nearest, rows)
        middles = np.where(sums.any(axis=1, keepdims=True), _on_grid(sums), middles)
    return middles


def _seeds(rows: Array, most: int) -> Array:
    """Rows to begin with. Each next one is the row that brings all rows nearest to their seeds."""
    alike = _product_transposed(rows, rows)
    best, chosen = np.full(len(rows), -1.0), list[int]()
    while len(chosen) < most:
        gains = np.rint(_row_sums(np.maximum(alike - best, 0.0)) * _GRID)
        seed = int(gains.argmax())
        if gains[seed] <= 0:
            break
        chosen.append(seed)
        best = np.maximum(best, alike[seed])
    return rows[chosen]


def _row_sums(rows: Array) -> Array:
    """The sum of each row, column by column."""
    return _product(rows, np.ones((rows.shape[1], 1)))[:, 0]


def _product(left: Array, right: Array) -> Array:
    out = np.zeros((left.shape[0], right.shape[1]))
    add_product(left, right, out)
    return out


def _product_transposed(left: Array, right: Array) -> Array:
    return _product(left, np.ascontiguousarray(right.T))
