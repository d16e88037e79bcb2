"""What is known of words before the training: topics to begin with, word vectors, word frequencies.

It comes from public sources, frequencies also from noised sums that were opened and paid for, so it costs no privacy. A model
keeps it in its state, where estimates from noised answers read it. Parties do not get it in training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from securetm.contracts import Array, State
from securetm.data_classes import dataclass, field
from securetm.models.fixed_order import product, product_transposed

TOPICS, VECTORS, FREQUENCIES = "public_topics", "public_vectors", "public_frequencies"  # arrays of a state
ROWS = "public_rows"  # another one, of a model whose words stand among embeddings
MOST_DIMENSIONS = 64  # of vectors in a state


@dataclass(frozen=True, eq=False)
class PublicKnowledge:
    """Public topics, word vectors and word frequencies over one list of words."""

    topics: Array  # topics x words, float64: rows sum to one and no word is impossible
    vectors: Array  # words x dimensions, float32: rows of length 1, zeros for a word that the source does not know
    frequencies: Array | None = None  # words, float64: they sum to one, and each is above 0; None where there are none
    rows: Array = field(
        default_factory=lambda: np.zeros((0, 0))
    )  # vectors as they came, of length 1; a state has them elsewhere

    @classmethod
    def kept_in(cls, state: State) -> Self | None:
        """The public knowledge in a model's state; None where the training began without it."""
        return cls(state[TOPICS], state[VECTORS], state.get(FREQUENCIES)) if TOPICS in state else None

    def arrays(self) -> Mapping[str, Array]:
        """For a state, without the vectors as they came."""
        kept = {} if self.frequencies is None else {FREQUENCIES: self.frequencies}
        return {TOPICS: self.topics, VECTORS: self.vectors, **kept}

    def counts(self, each: float) -> Array:
        """The topics as counts, with so many counts a word on average in each topic."""
        found: Array = self.topics * (each * self.topics.shape[1])
        return found


def without_public(state: State) -> State:
    """The state without public knowledge: parties do not need it to answer."""
    return {name: array for name, array in state.items() if name not in (TOPICS, VECTORS, FREQUENCIES, ROWS)}


def public_fits(state: State, topics: int, words: int) -> bool:
    """Whether a state, which may come from a file, has public knowledge with such shapes and possible values, or none."""
    found = {name: state[name] for name in (TOPICS, VECTORS, FREQUENCIES, ROWS) if name in state}
    if not found:
        return True
    if TOPICS not in found or VECTORS not in found:
        return False
    size = found[VECTORS].shape[1] if found[VECTORS].ndim == 2 else 0
    rows = found.get(ROWS, found[VECTORS]).shape[1:]
    shapes = {TOPICS: (topics, words), VECTORS: (words, size), FREQUENCIES: (words,), ROWS: (words, *rows)}
    types = {TOPICS: np.float64, VECTORS: np.float32, FREQUENCIES: np.float64, ROWS: np.float32}
    formed = all(array.shape == shapes[name] and array.dtype == types[name] for name, array in found.items())
    if not formed or not 1 <= size <= MOST_DIMENSIONS or not all(np.isfinite(array).all() for array in found.values()):
        return False
    shares = [array for name, array in found.items() if name in (TOPICS, FREQUENCIES)]
    of_length_1 = all(np.abs(found[name]).max(initial=0) <= 1.01 for name in (VECTORS, ROWS) if name in found)
    return of_length_1 and all(bool(array.min(initial=1) > 0 and np.allclose(array.sum(axis=-1), 1)) for array in shares)


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
    whole = _on_grid(np.asarray(vectors, dtype=np.float64))
    rows = _compressed(whole)
    middles = clusters(rows[rows.any(axis=1)], topics)
    near = np.exp(_SHARP * np.vstack([product_transposed(middles, rows), np.zeros((topics - len(middles), len(rows)))]))
    return PublicKnowledge(near / near.sum(axis=1, keepdims=True), rows.astype(np.float32), frequencies, whole)


def _on_grid(rows: Array) -> Array:
    """Rows of length 1 whose numbers were rounded, so that a last bit of the source moves nothing."""
    rounded = np.rint(of_length_one(rows) * _GRID)
    return of_length_one(rounded)


def of_length_one(rows: Array) -> Array:
    """Rows divided by their length; a row of zeros stays one."""
    lengths = np.sqrt(row_sums(np.square(rows)))[:, None]
    return rows / np.where(lengths > 0, lengths, 1.0)


def _compressed(rows: Array) -> Array:
    """Rows of at most 64 numbers, of length 1: without what all words share, in the directions in which they differ most."""
    known = np.asarray(rows.any(axis=1))
    if not known.any():
        return np.zeros((len(rows), min(rows.shape[1], MOST_DIMENSIONS) or 1))
    apart = np.where(known[:, None], rows - rows[known].sum(axis=0) / known.sum(), 0.0)
    if rows.shape[1] > MOST_DIMENSIONS:
        apart = product(apart, _directions(product(np.ascontiguousarray(apart.T), apart)))
    compressed = _on_grid(apart)
    lost = known & ~np.asarray(compressed.any(axis=1))  # a single known word differs from nothing
    compressed[lost, 0] = 1.0
    return compressed


def _directions(together: Array) -> Array:
    """The directions in which a symmetric matrix is largest, by repeated products, in columns."""
    size = len(together)
    found = np.cos(np.outer(np.arange(1, size + 1), np.arange(1, MOST_DIMENSIONS + 1)))  # no direction is preferred
    for _ in range(_TURNS):
        found = _upright(product(together, found))
    return found


def _upright(columns: Array) -> Array:
    """The columns made orthogonal, one after the other, each of length 1."""
    made = np.zeros_like(columns)
    for number in range(columns.shape[1]):
        column = columns[:, number : number + 1].copy()
        for _ in range(2):
            before = np.ascontiguousarray(made[:, :number])
            column -= product(before, product(np.ascontiguousarray(before.T), column)) if number else 0.0
        length = float(np.sqrt(np.square(column).sum()))
        made[:, number] = column[:, 0] / length if length > 0 else 0.0
    return made


def clusters(rows: Array, most: int) -> Array:
    """The middles of clusters of these rows, of length 1: as many as are asked for, or as there are different rows."""
    if not len(rows):
        return rows
    middles = _seeds(rows[:: -(-len(rows) // _MOST_WORDS)], most)
    nearest = np.full(len(rows), -1)
    for _ in range(_ROUNDS):
        before, nearest = nearest, np.rint(product_transposed(rows, middles) * _GRID).argmax(axis=1)
        if np.array_equal(before, nearest):
            break
        sums = np.zeros_like(middles)
        np.add.at(sums, nearest, rows)
        middles = np.where(sums.any(axis=1, keepdims=True), _on_grid(sums), middles)
    return middles


def _seeds(rows: Array, most: int) -> Array:
    """Rows to begin with. Each next one is the row that brings all rows nearest to their seeds."""
    alike = product_transposed(rows, rows)
    best, chosen = np.full(len(rows), -1.0), list[int]()
    while len(chosen) < most:
        gains = np.rint(row_sums(np.maximum(alike - best, 0.0)) * _GRID)
        seed = int(gains.argmax())
        if gains[seed] <= 0:
            break
        chosen.append(seed)
        best = np.maximum(best, alike[seed])
    return rows[chosen]


def row_sums(rows: Array) -> Array:
    """The sum of each row, column by column."""
    return product(rows, np.ones((rows.shape[1], 1)))[:, 0]


_SEEDED_SHARP = 3.0  # the power of a cosine: a word is of the topics whose middles are far nearer than the others
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
    near: Array = np.maximum(product_transposed(rows, middles), 0.0) ** _SEEDED_SHARP
    for line in seeds:
        near[list(line)] = 0.0
    for topic, line in enumerate(seeds):
        near[list(line), topic] = 1.0
    return of_length_one(near)
