"""A few documents cut into small blocks and dealt to shards, and an engine that gives results in any order: laws try both."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from securetm.answers.route import Route
from securetm.contracts import Array, Cohort, DocumentBlock, Memory, Query, RoundContext
from securetm.corpus.blocks import numbered
from securetm.entropy import OperatingSystem

T = TypeVar("T")
R = TypeVar("R")
_CUT = 3  # documents in a block
WAYS = ((1, 1, 0), (2, 2, 1), (7, 4, 2))  # shards, workers, and the order in which results arrive


@dataclass(frozen=True)
class OnShards:
    """Documents (contracts.BlockedDocuments) in memory whose blocks lie on so many shards."""

    documents: Any
    shards: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.documents, name)

    def __len__(self) -> int:
        return len(self.documents)

    def select(self, rows: Array) -> OnShards:
        """These documents, on the same shards."""
        return replace(self, documents=self.documents.select(rows))

    def blocks(self) -> Sequence[DocumentBlock]:
        """The blocks, each with the name of its shard."""
        found = self.documents.blocks()
        return [replace(block, shard=f"shard {n * self.shards // len(found)}") for n, block in enumerate(found)]


@dataclass(frozen=True)
class InAnyOrder:
    """An engine (contracts.Engine) in this process that pickles all that another process would get, and mixes up results."""

    workers: int
    seed: int

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """The results, in an order that the seed gives."""
        for place in np.random.default_rng(self.seed).permutation(len(tasks)):
            there, task = pickle.loads(pickle.dumps((work, tasks[place])))  # noqa: S301 - made in the same line
            yield pickle.loads(pickle.dumps(there(task)))  # noqa: S301 - made in the same line

    def close(self) -> None:
        """There is nothing to end."""


def in_small_blocks(documents: Any) -> Any:
    """The same documents, a few in each block."""
    return replace(documents, block_numbers=numbered(len(documents), _CUT, documents.persons))


def answered(query: Query, documents: Any, memory: Memory, way: tuple[int, int, int]) -> Array:
    """The flat vector of a party's answer whose blocks are on so many shards, by so many workers, in that order.

    A question that asks for a batch gets all documents: a batch would be one block.
    """
    cohort = Cohort(b"", 0, ("party",))
    route = Route.through(replace(query.terms, batch=0), (), cohort)
    return routed(route, query, documents, memory, way, RoundContext(cohort, OperatingSystem(), StoreOfNothing()))


def routed(
    route: Route, query: Query, documents: Any, memory: Memory, way: tuple[int, int, int], context: RoundContext
) -> Array:
    """The same after the mechanisms of a route."""
    shards, workers, seed = way
    engine, rng = InAnyOrder(workers, seed), np.random.default_rng(0)
    clipped = route.answer(query, OnShards(documents, shards), context, memory, rng, engine)
    return np.concatenate([np.asarray(block).ravel() for block in clipped.vector.values()])


class StoreOfNothing:
    """A store (contracts.Store) that is empty, for questions without a mechanism."""

    def get(self, key: str) -> bytes | None:
        """Nothing."""
        return None

    def put(self, key: str, value: bytes) -> None:
        """Nothing is kept."""
