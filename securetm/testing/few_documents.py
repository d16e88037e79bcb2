"""A few made-up documents (`contracts.Documents`) that laws are tried on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.corpus.blocks import HeldInBlocks

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
