"""A few made-up documents (`contracts.Documents`) that laws are tried on, in one block or in small ones on several shards."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy import sparse

from securetm.answers.route import Route
from securetm.contracts import Array, Cohort, DocumentBlock, Memory, Query, RoundContext
from securetm.corpus.blocks import HeldInBlocks, numbered
from securetm.data_classes import dataclass, field, replace
from securetm.entropy import OperatingSystem

WORDS = 12
EMBEDDING_SIZE = 16


@dataclass(frozen=True, eq=False)
class FewDocuments(HeldInBlocks):
    """Counts with made-up keys; a document's tokens are its words in the order of the vocabulary."""

    table: Any
    vocabulary: tuple[str, ...]
    numbers: Array | None = None
    persons: Array | None = None
    block_numbers: Array | None = None
    perturbed: ClassVar[None] = None

    @property
    def counts(self) -> Any:
        return sparse.csr_array(self.table)

    @property
    def keys(self) -> Array:
        return np.arange(len(self), dtype=np.uint64) if self.numbers is None else self.numbers

    @property
    def tokens(self) -> Array:
        dense = self.counts.toarray()
        return np.concatenate([np.repeat(np.arange(dense.shape[1], dtype=np.int32), row) for row in dense])

    @property
    def token_ends(self) -> Array:
        ends: Array = np.cumsum(np.asarray(self.counts.sum(axis=1)).ravel())
        return ends

    @property
    def sentence_ends(self) -> Array:
        return self.token_ends

    @property
    def embeddings(self) -> Array:
        """An embedding of each document: a fixed linear map of its counts."""
        found: Array = self.counts @ np.random.default_rng(3).normal(0, 1, (self.table.shape[1], EMBEDDING_SIZE))
        return found.astype(np.float32)

    def __len__(self) -> int:
        return int(self.table.shape[0])

    def select(self, rows: Array) -> Self:
        persons = None if self.persons is None else self.persons[rows]
        numbers = None if self.block_numbers is None else self.block_numbers[rows]
        return replace(self, table=self.counts[rows], numbers=self.keys[rows], persons=persons, block_numbers=numbers)

    def halves(self, seed: int) -> tuple[Self, Self]:
        dense: Array = self.counts.toarray()
        documents = zip(self.keys, dense, strict=True)
        seen = np.array([np.random.default_rng((seed, int(key))).binomial(row, 0.5) for key, row in documents])
        return replace(self, table=seen, numbers=self.keys), replace(self, table=dense - seen, numbers=self.keys)

    def belonging_to(self, persons: Array) -> Self:
        return replace(self, persons=persons)


def some_documents(n: int = 10, words: int = WORDS, seed: int = 0) -> FewDocuments:
    """n documents of a few words each, with different keys."""
    rng = np.random.default_rng((seed, 1))
    counts = rng.poisson(rng.gamma(0.3, 3.0, (n, words)))
    counts[:, 0] += 1  # no document is empty
    keys = np.arange(n, dtype=np.uint64) + np.uint64(1000 * seed)
    return FewDocuments(counts, tuple(f"word{w}" for w in range(words)), keys)


# ---- small blocks, in any order --------------------------------------------------------------------------------------

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
    return routed(route, query, documents, memory, way, RoundContext(cohort, OperatingSystem(), EmptyStore()))


def routed(
    route: Route, query: Query, documents: Any, memory: Memory, way: tuple[int, int, int], context: RoundContext
) -> Array:
    """The same after the mechanisms of a route."""
    shards, workers, seed = way
    engine, rng = InAnyOrder(workers, seed), np.random.default_rng(0)
    clipped = route.answer(query, OnShards(documents, shards), context, memory, rng, engine)
    return np.concatenate([np.asarray(block).ravel() for block in clipped.vector.values()])


@dataclass
class EmptyStore:
    """A role's store in one test; it starts with what it is given."""

    kept: dict[str, bytes] = field(default_factory=dict)

    def get(self, key: str) -> bytes | None:
        return self.kept.get(key)

    def put(self, key: str, value: bytes) -> None:
        self.kept[key] = value
