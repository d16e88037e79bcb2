"""Which documents are in a round's batch: decided by their keys, the round and a public seed. It draws nothing secret.

Documents lie on a circle where a mix of their keys puts them. A round begins at a place of its own, looks at the next documents
from there, sixteen for each of a batch, and takes those whose draws are least. With one document less, a round looks at one
other in its place, so a batch has at most one other document. It costs the same however many documents there are.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from securetm.contracts import Array

_LOOKED_AT = 16  # documents for each one of the batch


def batch_rows(keys: Array, batch: int, number: int, seed: int) -> Array:
    """The rows of the documents in batch `number`, in the order of their draws.

    Every batch is full, so that no sum holds fewer documents than agreed; a party with fewer than a batch gives them all.
    """
    documents = len(keys)
    if batch >= documents:
        return np.arange(documents)
    begin, salt = np.random.SeedSequence([seed, number]).generate_state(2, np.uint64)
    near = np.arange(documents)
    if (looked_at := _LOOKED_AT * batch) < documents:
        places, rows = _circle_of(_Keys(keys))
        first = int(np.searchsorted(places, begin))
        near = rows[np.arange(first, first + looked_at) % documents]
    draws = _mixed(_mixed(keys[near] ^ salt) + salt)
    return near[np.lexsort((keys[near], draws))[:batch]]


class _Keys:
    """An array of keys that is known by its identity."""

    def __init__(self, held: Array) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keys) and self.held is other.held


@lru_cache(maxsize=16)
def _circle_of(keys: _Keys) -> tuple[Array, Array]:
    """Where the documents with these keys lie, in rising order, and the row of each."""
    places = _mixed(keys.held)
    rows = np.argsort(places, kind="stable")
    return places[rows], rows


def _mixed(z: Array) -> Array:
    """The last step of SplitMix64, which gives distinct numbers for distinct ones."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed
