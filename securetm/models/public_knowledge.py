"""What is known of words before the training: topics to begin with, word vectors, word frequencies.

It comes from public sources, frequencies also from noised sums that were opened and paid for, so it costs no privacy. A model
keeps it in its state, where estimates from noised answers read it. Parties do not get it in training. How topics are made of
vectors is not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from securetm.contracts import Array, State

TOPICS, VECTORS, FREQUENCIES = "public_topics", "public_vectors", "public_frequencies"  # arrays of a state
MOST_DIMENSIONS = 64  # of vectors in a state


@dataclass(frozen=True, eq=False)
class PublicKnowledge:
    """Public topics, word vectors and word frequencies over one list of words."""

    topics: Array  # topics x words, float64: rows sum to one and no word is impossible
    vectors: Array  # words x dimensions, float32: rows of length 1, zeros for a word that the source does not know
    frequencies: Array | None = None  # words, float64: they sum to one, and each is above 0; None where there are none

    @classmethod
    def kept_in(cls, state: State) -> Self | None:
        """The public knowledge in a model's state; None where the training began without it."""
        return cls(state[TOPICS], state[VECTORS], state.get(FREQUENCIES)) if TOPICS in state else None

    def arrays(self) -> Mapping[str, Array]:
        """The arrays for a model's state."""
        kept = {} if self.frequencies is None else {FREQUENCIES: self.frequencies}
        return {TOPICS: self.topics, VECTORS: self.vectors, **kept}

    def counts(self, each: float) -> Array:
        """The topics as counts, with so many counts a word on average in each topic."""
        found: Array = self.topics * (each * self.topics.shape[1])
        return found


def without_public(state: State) -> State:
    """The state without public knowledge: parties do not need it to answer."""
    return {name: array for name, array in state.items() if name not in (TOPICS, VECTORS, FREQUENCIES)}


def public_fits(state: State, topics: int, words: int) -> bool:
    """Whether a state, which may come from a file, has public knowledge with such shapes and possible values, or none."""
    found = {name: state[name] for name in (TOPICS, VECTORS, FREQUENCIES) if name in state}
    if not found:
        return True
    if TOPICS not in found or VECTORS not in found:
        return False
    size = found[VECTORS].shape[1] if found[VECTORS].ndim == 2 else 0
    shapes = {TOPICS: (topics, words), VECTORS: (words, size), FREQUENCIES: (words,)}
    types = {TOPICS: np.float64, VECTORS: np.float32, FREQUENCIES: np.float64}
    formed = all(array.shape == shapes[name] and array.dtype == types[name] for name, array in found.items())
    if not formed or not 1 <= size <= MOST_DIMENSIONS or not all(np.isfinite(array).all() for array in found.values()):
        return False
    shares = [array for name, array in found.items() if name != VECTORS]
    return bool(np.abs(found[VECTORS]).max(initial=0) <= 1.01) and all(
        bool(array.min(initial=1) > 0 and np.allclose(array.sum(axis=-1), 1)) for array in shares
    )
