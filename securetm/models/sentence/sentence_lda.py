"""SentenceLDA: all words of a sentence have one topic, and a document is a mixture of its sentences' topics.

It is not a federation and knows no privacy. It learns from documents through a query only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from securetm.contracts import Array, Reads, State
from securetm.errors import check_setting
from securetm.models.gibbs.draws import SampledDocuments, on_ranges
from securetm.models.gibbs.lda import LDA
from securetm.models.sentence.sentence_documents import SentenceDocuments, slots_of
from securetm.models.sentence.sentence_likelihood import fold_in_sentences, log_likelihoods_of_sentences

_FEW_TOPICS = 2000  # up to here a draw over all topics learns more in a second than proposals do


@dataclass(frozen=True)
class SentenceLDA(LDA):
    """LDA whose draws are sentences, by Gibbs or by Metropolis-Hastings; documents must say where their sentences end.

    A document has few sentences, so `alpha` is smaller than LDA's. One word that a topic never had would decide for a whole
    sentence, so `eta` is larger. Text without punctuation is one sentence, and so has one topic: `longest` cuts it.
    """

    name: ClassVar[str] = "sentence-lda"
    reads: ClassVar[frozenset[Reads]] = frozenset({Reads.COUNTS, Reads.SENTENCES})

    alpha: float = 0.02  # of the symmetric Dirichlet prior of a document's topics, sentence by sentence
    eta: float = 0.1
    longest: int = 0  # words of a sentence: a longer one is cut; 0: however long it is

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "longest", self.longest >= 0, "must be at least 1, or 0 for sentences of any length")

    def read(self, documents: Any, words: int) -> SampledDocuments:
        """Each document's sentences; every sentence is a draw. Behind noise, a sentence is its slots."""
        if documents.perturbed is not None:
            return slots_of(documents, words, self.longest)
        return replace(SentenceDocuments.of(documents, words, self.longest), cycles=self.cycles_from(_FEW_TOPICS))

    def infer(self, state: State, documents: Any) -> Array:
        """Each document's topic shares, by sentence, under the shared topics, without random draws.

        It is CVB0 with the topics fixed, as for LDA, but a sentence as a whole belongs to a topic.
        """
        logs = np.log(self._by_word(state))
        held = SentenceDocuments.of(documents, len(logs), self.longest)
        out = np.empty((len(held), logs.shape[1]))
        on_ranges(held.lengths, self.threads, fold_in_sentences, held.sentences, logs, *self.folding(state), out)
        return out

    def log_likelihood(self, state: State, seen: Any, unseen: Any) -> Array:
        """The log-likelihood of each document's unseen sentences, given the topic shares of its seen ones.

        Like LDA's it is the logarithm of a probability of the same words, so the two may be compared. But this model knows
        where the unseen sentences end, and words of one sentence help to predict each other.
        """
        shares, logs = self.infer(state, seen), np.log(self._by_word(state))
        held = SentenceDocuments.of(unseen, len(logs), self.longest)
        out = np.zeros(len(held))
        on_ranges(held.lengths, self.threads, log_likelihoods_of_sentences, held.sentences, logs, shares, out)
        return out
