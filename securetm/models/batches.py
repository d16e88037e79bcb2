"""Documents in batches, by row number: one after the other, or shuffled in epochs. It reads no document."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from securetm.contracts import Array


def slices(count: int, size: int) -> Iterator[slice]:
    """So many rows in their order, at most `size` at a time."""
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def shuffled(count: int, size: int, epochs: int, rng: np.random.Generator) -> Iterator[Array]:
    """Batches of so many rows, each row once an epoch, in an order that the rng draws when the epoch begins."""
    for _ in range(epochs):
        yield from np.split(rng.permutation(count), range(size, count, size))
