"""A party's documents in the form that LDA reads: words and counts in a fixed order, one draw per token.

It stays at the party. The kernels draw the topics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from securetm.contracts import Array, Rows
from securetm.errors import BrokenPromise, CountsNotWhole
from securetm.models.gibbs.alias_tables import proposals_of
from securetm.models.gibbs.draws import Assignments, CountTable, SampledDocuments, on_ranges
from securetm.models.gibbs.lanes import LANES
from securetm.models.gibbs.lda_kernels import (
    Bags,
    counts_of,
    draws_of,
    fold_in,
    log_likelihoods,
    name_documents,
    resample,
    rows_of,
)
from securetm.models.gibbs.lda_mh import resample_by_proposals


@dataclass(frozen=True)
class LdaDocuments(SampledDocuments):
    """Documents as lists of words and counts, in the order of the vocabulary; a document's tokens have the same order."""

    bags: Bags
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
        return cls(draw_ends, Bags(ends, table.indices.astype(np.int64), whole))

    def limited(self, repeats: int) -> Self:
        """The same documents, in which no word counts more often than `repeats` times."""
        bags = self.bags._replace(counts=np.minimum(self.bags.counts, repeats))
        return replace(self, draw_ends=draws_of(bags.ends, bags.counts)[0], bags=bags)

    def names(self, keys: Array) -> Array:
        """The name under which each document's topics are remembered, made of its key and its words."""
        return name_documents(self.bags, np.ascontiguousarray(keys, dtype=np.uint64))

    def shares(self, by_word: Array, alpha: Array, passes: int, threads: int) -> Array:
        """Each document's topic shares under fixed topics, without random draws (CVB0), in at most so many passes over it."""
        out = np.empty((len(self), by_word.shape[1]))
        on_ranges(self.draw_ends, threads, fold_in, self.bags, by_word, alpha, passes, out)
        return out

    def log_likelihood(self, by_word: Array, shares: Array, threads: int) -> Array:
        """The log-likelihood of each document's words under fixed topics and its topic shares."""
        out = np.zeros(len(self))
        on_ranges(self.draw_ends, threads, log_likelihoods, self.bags, by_word, shares, out)
        return out

    def redrawn(self, table: CountTable, old: Assignments, sweeps: int, threads: int) -> Array:
        """The topic of every token after so many sweeps, by Gibbs or by proposals."""
        topics, documents = old.topics.copy(), (self.bags, self.draw_ends)
        if self.cycles:
            given, proposals = table.facts(old, table.by_word), proposals_of(table, threads)
            facts = (*documents, given, proposals, sweeps, self.cycles, topics)
            on_ranges(self.draw_ends, threads, resample_by_proposals, *facts)
        else:
            on_ranges(self.draw_ends, threads, resample, *documents, table.facts(old, _in_lanes(table)), sweeps, topics)
        return topics

    def counted(self, topics: Array, table: CountTable) -> Array:
        """How often each word has each topic in all these documents together: topics x words."""
        by_word = np.zeros((table.words, table.topics))
        counts_of(self.bags, self.draw_ends, topics, by_word)
        return np.ascontiguousarray(by_word.T)

    def rows(self, documents: Array, topics: Array, table: CountTable) -> Rows:
        """The topic-word counts of some documents, one sparse row each."""
        width = table.topics * table.words
        narrow = np.zeros(0, dtype=np.int32 if width < 2**31 else np.int64)
        parts = rows_of(documents, self.bags, self.draw_ends, topics, table.words, table.topics, narrow)
        return sparse.csr_array(parts, shape=(len(documents), width))


def _in_lanes(table: CountTable) -> Array:
    """The shared table as words x topics in single precision, with zeros up to whole blocks of lanes."""
    by_word = np.zeros((table.words, -(-table.topics // LANES) * LANES), dtype=np.float32)
    by_word[:, : table.topics] = table.counts.T
    return by_word
