"""The public order in which documents are read in an epoch: a shuffle that everybody can repeat. It draws nothing secret.

A small corpus is shuffled as a whole. Of a large one only the places that are asked for are computed, so that a batch costs the
same however many documents there are.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from securetm.contracts import BLOCK_DOCUMENTS, Array

_ROUNDS = 6


def rows_at(places: Array, documents: int, seed: int, epoch: int) -> Array:
    """The documents that stand at these places of the epoch's order."""
    if documents <= BLOCK_DOCUMENTS:
        return _shuffled(documents, seed, epoch)[places]
    half = ((documents - 1).bit_length() + 1) // 2
    keys = np.random.SeedSequence([seed, epoch]).generate_state(_ROUNDS, np.uint64)
    rows = _exchanged(places.astype(np.uint64), half, keys)
    while (beyond := np.flatnonzero(rows >= documents)).size:  # a place beyond the documents leads on to another one
        rows[beyond] = _exchanged(rows[beyond], half, keys)
    return rows.astype(np.int64)


@lru_cache(maxsize=64)
def _shuffled(documents: int, seed: int, epoch: int) -> Array:
    order: Array = np.random.default_rng([seed, epoch]).permutation(documents)
    return order


def _exchanged(numbers: Array, half: int, keys: Array) -> Array:
    """A Feistel network over twice `half` bits: one number goes to one number."""
    mask, width = np.uint64((1 << half) - 1), np.uint64(half)
    left, right = numbers >> width, numbers & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right + key) & mask)
    return (left << width) | right


def _mixed(z: Array) -> Array:
    """The last step of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed
