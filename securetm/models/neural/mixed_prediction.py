"""How a network whose topics are mixed predicts a document's other words. It learns nothing.

The encoder says which topics a document has with a certainty that does not depend on its length, and two words of a title tell
little. So the topics themselves say it, as in all models that mix topics: from how large topics are, by the words that were
seen. How large topics are follows from the weights alone, so no document is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from securetm.contracts import Array
from securetm.errors import BrokenPromise
from securetm.models.gibbs.document_completion import Completion
from securetm.models.gibbs.lda_documents import LdaDocuments
from securetm.models.gibbs.lda_kernels import Bags
from securetm.models.neural.mixture_loops import LEAST

_WEIGHT = 0.2  # of the prior, in words, for each topic of alpha 1; chosen on titles
_STEPS = 100


@dataclass(frozen=True)
class MixedPrediction:
    """Topics that are distributions over the words, and how much of all words each topic has."""

    by_word: Array  # words x topics
    prior: Completion

    @classmethod
    def of(cls, topics: Array, of_single_words: Array, alpha: float) -> MixedPrediction:
        """`of_single_words` are the shares that the encoder gives to documents of one word each."""
        by_word = np.ascontiguousarray(np.maximum(topics, LEAST).T, dtype=np.float64)
        return cls(by_word, Completion(prevalence(topics, of_single_words), _WEIGHT * alpha * len(topics)))

    def log_likelihood(self, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, given its seen ones; both are tables of counts."""
        shares = self.prior.shares(self.by_word, self._bags(seen), threads=1)
        return self._bags(unseen).log_likelihood(self.by_word, shares, threads=1)

    def _bags(self, counts: Any) -> LdaDocuments:
        """Counts need not be whole: nothing is drawn."""
        table = sparse.csr_array(counts)
        if table.shape[1] != len(self.by_word):
            raise BrokenPromise("document", table.shape[1], len(self.by_word))
        ends = table.indptr.astype(np.int64)
        return LdaDocuments(ends, Bags(ends, table.indices.astype(np.int64), table.data.astype(np.float64)))


def prevalence(topics: Array, of_single_words: Array) -> Array:
    """The share of each topic in all words, by which words that are drawn from the topics are encoded as these shares again."""
    again, found = topics @ of_single_words, np.full(len(topics), 1.0 / len(topics))
    for _ in range(_STEPS):
        found = found @ again
    return found
