"""NeuralLDA: ProdLDA's encoder before a mixture of topics, each a distribution over the words, as in LDA.

It is Srivastava and Sutton's (2017) second network. Their batch normalisation of the topics reads no document: it gives each
word one deviation over the topics; here the bound `word_spread`, after each step, gives it at most that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Array, State
from securetm.data_classes import dataclass, replace
from securetm.errors import BrokenPromise
from securetm.extras import sparse
from securetm.models.estimator import Finite, Fraction, Positive
from securetm.models.given_documents import as_documents
from securetm.models.mixed_topics import BagDocuments, Bags, Completion
from securetm.models.neural.cpu_kernels import LEAST
from securetm.models.neural.decoders import Mixture
from securetm.models.neural.neural_model import NeuralTopicModel

_WEIGHT = 0.2  # of the prior, in words, for each topic of alpha 1; chosen on titles
_STEPS = 100


@dataclass(frozen=True)
class NeuralLDA(NeuralTopicModel):
    """A mixture of multinomials with a neural encoder. A word's logits have at most deviation `gain` over the topics.

    Topics start nearly alike and words of which little is known stay so: else few documents are predicted by topics drawn at
    random. Logits of topics are `gain / word_spread` times their weights, so the background steps further than other weights.
    """

    theta_dropout: Fraction = 0.0  # of a document's topic shares
    gain: Positive = 2.0  # largest deviation of a word's logits over the topics, beside the learned background
    background_rate: Finite = 10.0  # length of a step of the background, in steps of other weights
    relevance: float = 0.6  # how much of the background counts for a topic's words
    name: ClassVar[str] = "neural-lda"
    equal_words: ClassVar[bool] = False
    # Under a budget a step is mostly noise: shorter ones wander less, in topics above all.
    budget_defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 1e-3, "background_rate": 5.0}

    def decoding(self, state: State) -> Mixture:
        return Mixture(self.gain / self.word_spread)

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen words, by the topics themselves: they know how little few words tell."""
        words = self._shape(state["weights"]).vocabulary
        alone = as_documents(sparse.eye_array(words, dtype=np.int32, format="csr"), tuple(map(str, range(words))))
        topics = replace(self, relevance=1.0).topics(state)
        by_word = np.ascontiguousarray(np.maximum(topics, LEAST).T, dtype=np.float64)
        prior = Completion(prevalence(topics, self.infer(state, alone)), _WEIGHT * self.alpha * len(topics))
        shares = prior.shares(by_word, _bags(seen.counts, words), threads=1)
        return _bags(unseen.counts, words).log_likelihood(by_word, shares, threads=1)


def _bags(counts: Any, words: int) -> BagDocuments:
    """Counts need not be whole: nothing is drawn."""
    table = sparse.csr_array(counts)
    if table.shape[1] != words:
        raise BrokenPromise("document", table.shape[1], words)
    ends = table.indptr.astype(np.int64)
    return BagDocuments(ends, Bags(ends, table.indices.astype(np.int64), table.data.astype(np.float64)))


def prevalence(topics: Array, of_single_words: Array) -> Array:
    """The share of each topic in all words, by which words that are drawn from the topics are encoded as these shares again."""
    again, found = topics @ of_single_words, np.full(len(topics), 1.0 / len(topics))
    for _ in range(_STEPS):
        found = found @ again
    return found
