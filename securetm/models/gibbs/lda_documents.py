"""A party's documents in the form that LDA reads: words and counts in a fixed order, one draw per token.

It stays with whoever holds the documents. How tokens draw is in the kernels; another sampler reads the same bags.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array, ClippedSum
from securetm.errors import BrokenPromise, CountsNotWhole
from securetm.models.gibbs.alias_tables import build, tables_of
from securetm.models.gibbs.draws import Assignments, CountTable, chunks, on_ranges
from securetm.models.gibbs.lanes import LANES
from securetm.models.gibbs.lda_kernels import counts_of, draws_of, fold_in, name_documents, resample, rows_of, said
from securetm.models.gibbs.lda_mh import resample_by_proposals

_CHUNK = 1 << 20  # tokens added at a time, so that memory does not grow with the corpus


@dataclass(frozen=True)
class LdaDocuments:
    """Documents as lists of words and counts, in the order of the vocabulary; a document's tokens stand in the same order."""

    ends: Array  # where each document begins in `words`, and where the last one ends
    words: Array
    counts: Array
    draw_ends: Array  # the same for its tokens
    cycles: int = 0  # of proposals for each token in a sweep; 0: it is drawn by Gibbs

    @classmethod
    def of(cls, matrix: Any, vocabulary: int) -> Self:
        """The bags in a matrix of whole counts over that many words."""
        table = sparse.csr_array(matrix)
        if table.shape[1] != vocabulary:
            raise BrokenPromise("document", table.shape[1], vocabulary)
        whole, ends = table.data.astype(np.int64), table.indptr.astype(np.int64)
        if not np.issubdtype(table.dtype, np.integer) and (whole != table.data).any():
            raise CountsNotWhole()
        draw_ends, least = draws_of(ends, whole)
        if least < 0:
            raise CountsNotWhole()
        if least == 0 or not table.has_canonical_format:
            table = sparse.csr_array((whole, table.indices, table.indptr), table.shape).copy()  # the corpus stays as it is
            table.sum_duplicates()
            table.eliminate_zeros()
            whole, ends = table.data, table.indptr.astype(np.int64)
        return cls(ends, table.indices.astype(np.int64), whole, draw_ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def names(self, keys: Array) -> Array:
        """What each document's topics are remembered under: its key and what it holds."""
        return name_documents(self.ends, self.words, self.counts, np.ascontiguousarray(keys, dtype=np.uint64))

    def shares(self, by_word: Array, alpha: Array, passes: int, threads: int) -> Array:
        """Each document's topic shares under fixed topics, without chance (CVB0), in at most so many passes over it."""
        out = np.empty((len(self), by_word.shape[1]))
        facts = (self.ends, self.words, self.counts, by_word, alpha, passes)
        on_ranges(self.draw_ends, threads, lambda first, last: fold_in(first, last, *facts, out))
        return out

    def log_likelihood(self, by_word: Array, shares: Array, threads: int) -> Array:
        """Of each document's words under fixed topics and these shares of them."""
        out = np.zeros(len(self))
        facts = (self.ends, self.words, self.counts, by_word, shares)
        on_ranges(self.draw_ends, threads, lambda first, last: said(first, last, *facts, out))
        return out

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        """Token by token, by Gibbs or by proposals."""
        topics, noise = old.topics.copy(), table.noise(old.names)
        facts: tuple[Any, ...] = (
            self.ends,
            self.words,
            self.counts,
            self.draw_ends,
            noise,
            old.known(),
            old.counted(table.step),
        )
        draw: Callable[..., None]
        draw, rest = self._by_proposals(table, sweeps, threads) if self.cycles else (resample, _for_gibbs(table, sweeps))
        facts = (*facts, *rest, topics)
        on_ranges(self.draw_ends, threads, lambda first, last: draw(first, last, *facts))
        return topics

    def _by_proposals(self, table: CountTable, sweeps: int, threads: int) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """The draw, and what it needs to know: the shared table, the priors, and alias tables of the words and of alpha."""
        of_words, sums = np.empty(table.by_word.shape), np.empty(table.words)
        scale, bits = 1.0 / (table.totals + table.words * table.eta), of_words.view(np.uint64)
        rows = np.arange(table.words + 1)
        on_ranges(rows, threads, lambda first, last: build(first, last, table.by_word, scale, bits, sums))
        proposals = (of_words, tables_of(table.alpha[None])[0][0])
        return resample_by_proposals, (*_shared(table, table.by_word), *proposals, sweeps, self.cycles)

    def counted(self, topics: Array, table: CountTable) -> Array:
        """How often each word has each topic in all these documents together: topics x words."""
        by_word = np.zeros((table.words, table.topics))
        counts_of(self.ends, self.words, self.counts, self.draw_ends, topics, by_word)
        return np.ascontiguousarray(by_word.T)

    def add_rows(self, topics: Array, table: CountTable, clipped_sum: ClippedSum, persons: Array | None) -> None:
        """Each document's counts, as one sparse row."""
        k, words = table.topics, table.words
        narrow = np.zeros(0, dtype=np.int32 if k * words < 2**31 else np.int64)  # of the type that places have
        facts = (self.ends, self.words, self.counts, self.draw_ends, topics, words, k, narrow)
        for rows in chunks(self.draw_ends, persons, _CHUNK):
            clipped_sum.add(sparse.csr_array(rows_of(rows, *facts), shape=(len(rows), k * words)), rows)


def _for_gibbs(table: CountTable, sweeps: int) -> tuple[Any, ...]:
    """The shared table as words x topics in single precision, with zeros to whole blocks of lanes, and the priors."""
    by_word = np.zeros((table.words, -(-table.topics // LANES) * LANES), dtype=np.float32)
    by_word[:, : table.topics] = table.counts.T
    return (*_shared(table, by_word), sweeps)


def _shared(table: CountTable, by_word: Array) -> tuple[Any, ...]:
    return by_word, table.totals, table.alpha, table.eta
