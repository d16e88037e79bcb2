"""Made-up documents for trials of models (`additivity.py`, `row_trial.py`), with everything that a model may read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array

_WORDS = 30


@dataclass(frozen=True)
class TrialDocuments:
    """Made-up documents (contracts.Documents), with everything that a model may read."""

    each: tuple[Array, ...]  # word ids in reading order
    keys: Array
    persons: Array
    vocabulary: tuple[str, ...] = field(default=tuple(f"word {v}" for v in range(_WORDS)))
    embedding_size: int = 16
    perturbed: ClassVar[None] = None

    @property
    def counts(self) -> Any:
        """How often each document has each word."""
        return sparse.csr_array(np.array([np.bincount(one, minlength=_WORDS) for one in self.each]).astype(np.int32))

    @property
    def tokens(self) -> Array:
        """All word ids in reading order."""
        return np.concatenate(self.each).astype(np.int32)

    @property
    def token_ends(self) -> Array:
        """Where each document ends."""
        return np.cumsum([len(one) for one in self.each])

    @property
    def sentence_ends(self) -> Array:
        """Each document is one sentence."""
        return self.token_ends

    @property
    def embeddings(self) -> Array:
        """An embedding of each document: a fixed linear map of its counts."""
        found: Array = self.counts.toarray() @ np.random.default_rng(3).normal(0, 1, (_WORDS, self.embedding_size))
        return found

    def __len__(self) -> int:
        return len(self.each)

    def select(self, rows: Array) -> Self:
        """These documents only."""
        return replace(self, each=tuple(self.each[i] for i in rows), keys=self.keys[rows], persons=self.persons[rows])

    def halves(self, seed: int) -> tuple[Self, Self]:  # noqa: ARG002 - every second word
        """Words to see and words to predict."""
        seen, unseen = (tuple(one[first::2] for one in self.each) for first in (0, 1))
        return replace(self, each=seen), replace(self, each=unseen)


def trial_documents(copies: int = 1, embedding_size: int = 0) -> TrialDocuments:
    """Documents of 1 to 400 words, so many of each length; every document has its own person."""
    rng = np.random.default_rng(0)
    lengths = (8, 1, 60, 12, 9, 400, 20, 5, 33, 2, 15, 10) * copies
    each = tuple(rng.permutation(rng.choice(_WORDS, n, p=rng.dirichlet(np.full(_WORDS, 0.3)))) for n in lengths)
    keys = rng.integers(0, 2**64, len(each), dtype=np.uint64)
    return TrialDocuments(each, keys, np.arange(len(each)), embedding_size=embedding_size or 16)
