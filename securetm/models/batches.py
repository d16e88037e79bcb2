"""Documents in batches, chunks and ranges, by row number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from securetm.contracts import Array


def slices(count: int, size: int) -> Iterator[slice]:
    """So many rows in their order, at most `size` at a time."""
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def shuffled(count: int, size: int, epochs: int, rng: np.random.Generator) -> Iterator[Array]:
    """Batches of so many rows, each row once an epoch, in an order that the rng draws when the epoch begins."""
    for _ in range(epochs):
        yield from np.split(rng.permutation(count), range(size, count, size))


_A_THREAD = 2_000  # words, from which on another thread is worth its start


def on_ranges(weights: Array, threads: int, work: Callable[..., None], *facts: Any) -> None:
    """Calls `work(first, last, *facts)` on ranges of documents of about equal weight, one range per thread.

    `weights` are running sums: where each document begins and where the last one ends. No document's result depends on the
    ranges. What is little is done at once: starting a thread would take longer.
    """
    parts = list(ranges(weights, min(threads, 1 + int(weights[-1]) // _A_THREAD)))
    if len(parts) == 1:
        work(*parts[0], *facts)
        return
    from concurrent.futures import ThreadPoolExecutor  # with logging, which nobody else loads

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, first, last, *facts) for first, last in parts]:
            done.result()


def ranges(weights: Array, parts: int) -> Iterator[tuple[int, int]]:
    """The documents in that many ranges of about equal weight."""
    aims = np.linspace(0, weights[-1], parts + 1)[1:-1]
    borders = [0, *np.searchsorted(weights[1:-1], aims).tolist(), len(weights) - 1]
    return ((first, last) for first, last in pairwise(borders) if first < last)


def chunks(weights: Array, owners: Array | None, most: int) -> Iterator[Array]:
    """Documents in chunks of about `most` by weight. All documents of an owner are in one chunk."""
    lengths = np.diff(weights)
    order = np.arange(len(lengths)) if owners is None or lengths.sum() < most else np.argsort(owners, kind="stable")
    filled = np.cumsum(lengths[order]) // most
    if owners is not None and len(order):
        heads = np.flatnonzero(np.diff(owners[order], prepend=owners[order[0]] - 1))
        filled = np.repeat(filled[heads], np.diff(heads, append=len(order)))
    yield from np.split(order, np.flatnonzero(np.diff(filled)) + 1) if len(order) else ()


def with_zero(ends: Array) -> Array:
    """Where each item begins, and where the last one ends, from where each one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.asarray(ends, dtype=np.int64)])


def places_among(known: Array, names: Array) -> tuple[Array, Array]:
    """Which of the names are known, by their places, and each one's place among the known ones."""
    if not len(known) or not len(names):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known[order], names), len(order) - 1)]
    met = np.flatnonzero(known[place] == names)
    return met, place[met]


def grouped(owners: Array) -> tuple[Array, Array]:
    """The documents by owner, and where each owner's begin and the last one's end; owners are in order."""
    order = np.argsort(owners, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(owners[order], prepend=owners[order[:1]] - 1)), len(order))
